// SPDX-License-Identifier: Apache-2.0

// Checks the messages of a queue store; QueueCatalog checks the records of queues, counters and the
// store.

#include "muster/queue/rocksdb/check.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "muster/base/status.h"
#include "muster/queue/rocksdb/queue_catalog.h"

namespace muster::queue::rocksdb {

namespace {

using os::Damage;

// The two records under one message key; nullopt for a record that is missing.
struct Pair {
  std::string key;
  MessageAddress address;
  std::optional<std::string> first;  // state, or poison record
  std::optional<std::string> body;
};

class Check {
 public:
  Check(muster::rocksdb::RepairSession* session, const QueueCheckOptions& options)
      : session_(session),
        options_(options),
        now_us_(absl::ToUnixMicros(options.clock->Now())),
        catalog_(session, options.account, now_us_) {}

  absl::Status Run() {
    MUSTER_RETURN_IF_ERROR(catalog_.Read());
    MUSTER_RETURN_IF_ERROR(CheckPairs(kState, 0, &Check::CheckMessage));
    MUSTER_RETURN_IF_ERROR(CheckPairs(kPoison, kPoisonBodies, &Check::CheckPoison));
    MUSTER_RETURN_IF_ERROR(CheckDedup());
    return catalog_.Finish();
  }

 private:
  using CheckPair = absl::Status (Check::*)(const Pair&, QueueFacts*);

  absl::Status CheckDedup();
  absl::Status CheckDedupRecord(absl::string_view key, absl::string_view value);

  // Iterates over `family` and its bodies in parallel. `mask` is set in the keys of the bodies.
  absl::Status CheckPairs(FamilyIndex family, uint64_t mask, CheckPair check);
  absl::Status CheckOnePair(FamilyIndex family, uint64_t mask, Pair pair, CheckPair check);
  absl::Status CheckMessage(const Pair& pair, QueueFacts* queue);
  absl::Status CheckPoison(const Pair& pair, QueueFacts* queue);
  // Whether at least one record of `pair` is sound, which shows that its queue existed.
  static bool IsSound(FamilyIndex family, const Pair& pair, const std::string& body_key);
  // Returns what is wrong with the body of `pair`; "" if nothing is.
  std::string WhyNotBody(const Pair& pair, bool body_sound, const QueueFacts& queue,
                         absl::string_view body) const;
  // Returns both records of `pair`, for a repair that removes them.
  std::vector<os::StoredRecord> Both(const Pair& pair, FamilyIndex family,
                                     const std::string& body_key) const;

  muster::rocksdb::RepairSession* const session_;  // not owned
  const QueueCheckOptions& options_;
  const int64_t now_us_;
  QueueCatalog catalog_;
};

absl::Status Check::CheckDedup() {
  return session_->ForEach(kDedup, [this](absl::string_view key, absl::string_view value) {
    return CheckDedupRecord(key, value);
  });
}

absl::Status Check::CheckDedupRecord(absl::string_view key, absl::string_view value) {
  session_->Count(1);
  const uint64_t number = ParseQueueNumber(key, 0).value_or(0);
  const auto dedup = DecodeDedup(value, key);
  MUSTER_ASSIGN_OR_RETURN(QueueFacts* const queue,
                          catalog_.Find(number, [&] { return dedup.has_value(); }));
  if (queue != nullptr && dedup.has_value()) {
    queue->next_seq = std::max(queue->next_seq, dedup->seq + 1);
    return absl::OkStatus();
  }
  const absl::string_view id = key.substr(std::min<size_t>(8, key.size()));
  return catalog_.RemoveDamaged(
      kDedup, key, value,
      absl::StrCat(queue == nullptr ? absl::StrCat("queue ", number) : catalog_.NameOf(*queue),
                   " dedup id '", absl::CHexEscape(id), "'"),
      queue == nullptr ? "there is no such queue" : "it is damaged");
}

absl::Status Check::CheckPairs(FamilyIndex family, uint64_t mask, CheckPair check) {
  muster::rocksdb::RecordCursor first = session_->Read(family);
  const std::string first_body = MessageKey(mask, 0);
  muster::rocksdb::RecordCursor body = session_->Read(kBody, mask == 0 ? "" : first_body);
  const std::string end = mask == 0 ? MessageKey(kPoisonBodies, 0) : "";
  // The key of the state or poison record that belongs to a body.
  const auto partner = [mask](absl::string_view key) {
    std::string unmasked(key);
    if (mask != 0) unmasked[0] = static_cast<char>(unmasked[0] & 0x7f);
    return unmasked;
  };
  while (true) {
    const bool has_first = first.valid();
    const bool has_body = body.valid() && (end.empty() || body.key() < end);
    if (!has_first && !has_body) {
      MUSTER_RETURN_IF_ERROR(first.status());
      return body.status();
    }
    const std::string body_partner = has_body ? partner(body.key()) : "";
    Pair pair;
    pair.key = !has_body || (has_first && first.key() < body_partner) ? std::string(first.key())
                                                                      : body_partner;
    if (has_first && first.key() == pair.key) {
      pair.first = std::string(first.value());
      first.Next();
      session_->Count(1);
    }
    if (has_body && body_partner == pair.key) {
      pair.body = std::string(body.value());
      body.Next();
      session_->Count(1);
    }
    MUSTER_RETURN_IF_ERROR(CheckOnePair(family, mask, std::move(pair), check));
  }
}

absl::Status Check::CheckOnePair(FamilyIndex family, uint64_t mask, Pair pair, CheckPair check) {
  const auto address = ParseMessageKey(pair.key);
  std::string body_key = pair.key;
  if (mask != 0) body_key[0] = static_cast<char>(body_key[0] | 0x80);
  if (address.has_value()) {
    pair.address = *address;
    MUSTER_ASSIGN_OR_RETURN(QueueFacts* const queue, catalog_.Find(address->queue, [&] {
      return IsSound(family, pair, body_key);
    }));
    if (queue != nullptr) {
      ++queue->messages;
      queue->next_seq = std::max(queue->next_seq, address->seq + 1);
      return (this->*check)(pair, queue);
    }
  }
  const std::string name = absl::StrCat("key ", absl::BytesToHexString(pair.key));
  const std::string why = address.has_value() ? absl::StrCat("there is no queue ", address->queue)
                                              : "no record has such a key";
  if (pair.first.has_value()) {
    MUSTER_RETURN_IF_ERROR(catalog_.RemoveDamaged(family, pair.key, *pair.first, name, why));
  }
  if (!pair.body.has_value()) return absl::OkStatus();
  return catalog_.RemoveDamaged(kBody, body_key, *pair.body, name, why);
}

bool Check::IsSound(FamilyIndex family, const Pair& pair, const std::string& body_key) {
  std::string body = pair.body.value_or("");
  if (pair.body.has_value() && StripToBody(&body, body_key)) return true;
  if (!pair.first.has_value()) return false;
  return family == kState ? DecodeState(*pair.first, pair.key).has_value()
                          : DecodePoison(*pair.first, pair.key).has_value();
}

std::vector<os::StoredRecord> Check::Both(const Pair& pair, FamilyIndex family,
                                          const std::string& body_key) const {
  std::vector<os::StoredRecord> records;
  if (pair.first.has_value()) records.push_back(session_->Stored(family, pair.key, *pair.first));
  if (pair.body.has_value()) records.push_back(session_->Stored(kBody, body_key, *pair.body));
  return records;
}

std::string Check::WhyNotBody(const Pair& pair, bool body_sound, const QueueFacts& queue,
                              absl::string_view body) const {
  if (!pair.body.has_value()) return "it is not there";
  if (!body_sound) return "it is damaged";
  if (!options_.check_body) return "";
  return std::string(options_.check_body(queue.record.id, body).message());
}

absl::Status Check::CheckMessage(const Pair& pair, QueueFacts* queue) {
  const auto state = pair.first.has_value() ? DecodeState(*pair.first, pair.key) : std::nullopt;
  if (state.has_value()) catalog_.NoteLease(state->lease);
  std::string body = pair.body.value_or("");
  const bool body_sound = pair.body.has_value() && StripToBody(&body, pair.key);
  Damage damage{.kind = "body", .name = catalog_.NameOf(*queue, pair.address)};
  damage.why = WhyNotBody(pair, body_sound, *queue, body);
  if (!damage.why.empty()) {
    damage.remedy = "the message is taken away; the run of its batch puts it again";
    damage.records = Both(pair, kState, pair.key);
    return session_->Found(std::move(damage));
  }
  if (state.has_value()) return absl::OkStatus();
  damage.kind = "state";
  damage.why = pair.first.has_value() ? "it is damaged" : "it is not there";
  damage.remedy = "is made again: the message is ready";
  if (pair.first.has_value()) damage.records = {session_->Stored(kState, pair.key, *pair.first)};
  MUSTER_RETURN_IF_ERROR(session_->Found(std::move(damage)));
  MessageState mended;
  mended.visible_us = mended.insertion_us = now_us_;
  // It is unknown whether the message killed its holder, so the message is a suspect.
  mended.flags = kSuspect;
  session_->Put(kState, pair.key, EncodeState(mended, pair.key));
  return absl::OkStatus();
}

absl::Status Check::CheckPoison(const Pair& pair, QueueFacts* queue) {
  const std::string body_key = PoisonBodyKey(pair.address.queue, pair.address.seq);
  std::string body = pair.body.value_or("");
  const bool body_sound = pair.body.has_value() && StripToBody(&body, body_key);
  Damage damage{.kind = "poison body", .name = catalog_.NameOf(*queue, pair.address)};
  damage.why = WhyNotBody(pair, body_sound, *queue, body);
  if (!damage.why.empty()) {
    damage.remedy = "the message is taken away; it was given up before";
    damage.records = Both(pair, kPoison, body_key);
    return session_->Found(std::move(damage));
  }
  if (pair.first.has_value() && DecodePoison(*pair.first, pair.key).has_value()) {
    return absl::OkStatus();
  }
  damage.kind = "poison";
  damage.why = pair.first.has_value() ? "it is damaged" : "it is not there";
  damage.remedy = "is made again without the cause";
  if (pair.first.has_value()) damage.records = {session_->Stored(kPoison, pair.key, *pair.first)};
  MUSTER_RETURN_IF_ERROR(session_->Found(std::move(damage)));
  PoisonRecord mended;
  mended.insertion_us = mended.time_us = now_us_;
  mended.reason = "the record of its cause was damaged, and is lost";
  session_->Put(kPoison, pair.key, EncodePoison(mended, pair.key));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<os::CheckSummary> CheckQueues(const std::string& dir,
                                             const QueueCheckOptions& options) {
  muster::rocksdb::DatabaseOptions base;
  base.env = options.env;
  MUSTER_ASSIGN_OR_RETURN(const auto session, muster::rocksdb::RepairSession::Open(
                                                  dir, "queue", QueueDatabase(base), options.check,
                                                  /*may_begin_anew=*/true));
  MUSTER_RETURN_IF_ERROR(Check(session.get(), options).Run());
  return session->Finish();
}

}  // namespace muster::queue::rocksdb
