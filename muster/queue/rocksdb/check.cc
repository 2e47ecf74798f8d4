// Checks and repairs an embedded queue store. QueueCatalog handles the records of queues, counters
// and the store; the check of messages handles all others.

#include "muster/queue/rocksdb/check.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "muster/base/status.h"
#include "muster/queue/rocksdb/codec.h"
#include "muster/queue/rocksdb/storage.h"
#include "muster/rocksdb/repair_session.h"

namespace muster::queue::rocksdb {

// What a check knows of a queue: its own records, and what its messages show.
struct QueueFacts {
  QueueRecord record;
  std::optional<Counters> counters;
  std::string damaged_counters;  // as stored
  int64_t messages = 0;          // with poison
  uint64_t next_seq = 0;         // one after the last that was seen
};

// QueueCatalog: the queues that a check finds in an embedded store, from their own records and from
// their messages. It rebuilds a lost queue record from the messages.
// Call Read first, then Find and NoteLease for each message, then Finish. Returns the errors of
// `session`. Not thread-safe.
class QueueCatalog {
 public:
  // `session` is not owned. `account`: the account given to queues with a lost record.
  QueueCatalog(muster::rocksdb::RepairSession* session, std::string account, int64_t now_us)
      : session_(session), account_(std::move(account)), now_us_(now_us) {}

  // Reads the records of queues, their counters and the store record. FailedPrecondition: a newer
  // muster wrote them.
  absl::Status Read();
  // Returns the queue of a record that was found. If the queue is unknown: recovers it when
  // `shows_it_was_there` returns true, otherwise returns nullptr.
  absl::StatusOr<QueueFacts*> Find(uint64_t number, absl::FunctionRef<bool()> shows_it_was_there);
  void NoteLease(uint64_t lease) { last_lease_ = std::max(last_lease_, lease); }
  // Checks the counters and the store record against all messages that were found.
  absl::Status Finish();

  std::string NameOf(const QueueFacts& queue, const MessageAddress& message) const;
  static std::string NameOf(const QueueFacts& queue);
  // Reports a useless record and removes it.
  absl::Status RemoveDamaged(FamilyIndex family, absl::string_view key, absl::string_view value,
                             std::string name, std::string why);

 private:
  absl::Status ReadRecord(absl::string_view key, absl::string_view value);
  absl::Status ReadQueue(absl::string_view key, absl::string_view value);
  // Writes a record with a new name for queue `number`.
  absl::Status Recover(uint64_t number, std::string why, std::vector<os::StoredRecord> records);
  absl::Status AddCounters(uint64_t number, const std::string& value);
  absl::Status CheckStore();
  absl::Status CheckCounters(uint64_t number, const QueueFacts& queue);

  muster::rocksdb::RepairSession* const session_;  // not owned
  const std::string account_;
  const int64_t now_us_;
  std::map<uint64_t, QueueFacts> queues_;
  std::optional<StoreRecord> store_;
  std::string damaged_store_;  // as stored
  uint64_t last_queue_ = 0;
  uint64_t last_lease_ = 0;
};

using os::Damage;

std::string QueueCatalog::NameOf(const QueueFacts& queue) {
  return absl::StrCat("queue '", queue.record.id.ToString(), "'");
}

std::string QueueCatalog::NameOf(const QueueFacts& queue, const MessageAddress& message) const {
  const std::string id = store_.has_value() ? MessageIdOf(store_->salt, message.queue, message.seq)
                                            : absl::StrCat("number ", message.seq);
  return absl::StrCat(NameOf(queue), " message ", id);
}

absl::Status QueueCatalog::RemoveDamaged(FamilyIndex family, absl::string_view key,
                                         absl::string_view value, std::string name,
                                         std::string why) {
  Damage damage;
  damage.records = {session_->Stored(family, key, value)};
  damage.kind = damage.records.front().family;
  damage.name = std::move(name);
  damage.why = std::move(why);
  damage.remedy = "the record is taken away";
  return session_->Found(std::move(damage));
}

// Keys come in the order 'c' < 'q' < 's': counters come before the queues are known, so they wait.
absl::Status QueueCatalog::Read() {
  std::map<uint64_t, std::string> counters;
  const auto check = [&](absl::string_view key, absl::string_view value) {
    session_->Count(1);
    if (key.size() != 9 || key[0] != 'c') return ReadRecord(key, value);
    counters[*ParseQueueNumber(key, 1)] = std::string(value);
    return absl::OkStatus();
  };
  MUSTER_RETURN_IF_ERROR(session_->ForEach(kMeta, check));
  for (const auto& [number, value] : counters) {
    MUSTER_RETURN_IF_ERROR(AddCounters(number, value));
  }
  return absl::OkStatus();
}

absl::Status QueueCatalog::AddCounters(uint64_t number, const std::string& value) {
  std::optional<Counters> counters = DecodeCounters(value);
  MUSTER_ASSIGN_OR_RETURN(QueueFacts* const queue,
                          Find(number, [&] { return counters.has_value(); }));
  if (queue == nullptr) {
    return RemoveDamaged(kMeta, CountersKey(number), value,
                         absl::StrCat("counters of queue ", number), "there is no such queue");
  }
  queue->counters = counters;
  if (!queue->counters.has_value()) queue->damaged_counters = value;
  return absl::OkStatus();
}

absl::Status QueueCatalog::ReadRecord(absl::string_view key, absl::string_view value) {
  if (key == StoreKey()) {
    if (FormatVersionOf(value) > kFormatVersion) {
      return absl::FailedPreconditionError("the queues were written by a newer muster");
    }
    store_ = DecodeStore(value);
    if (!store_.has_value()) damaged_store_ = std::string(value);
    return absl::OkStatus();
  }
  if (key.size() == 9 && key[0] == 'q') return ReadQueue(key, value);
  return RemoveDamaged(kMeta, key, value, absl::StrCat("key ", absl::BytesToHexString(key)),
                       "no record has such a key");
}

absl::Status QueueCatalog::ReadQueue(absl::string_view key, absl::string_view value) {
  const uint64_t number = *ParseQueueNumber(key, 1);
  last_queue_ = std::max(last_queue_, number);
  std::optional<QueueRecord> record = DecodeQueue(value, key);
  if (record.has_value()) {
    queues_[number].record = *std::move(record);
    return absl::OkStatus();
  }
  return Recover(number, "it is damaged", {session_->Stored(kMeta, key, value)});
}

absl::Status QueueCatalog::Recover(uint64_t number, std::string why,
                                   std::vector<os::StoredRecord> records) {
  last_queue_ = std::max(last_queue_, number);
  const std::string key = QueueKey(number);
  QueueRecord recovered;
  recovered.id = {account_, absl::StrCat("recovered-", number)};
  Damage damage{.kind = "queue", .name = absl::StrCat("queue ", number), .why = std::move(why)};
  damage.remedy = absl::StrCat("the queue is called ", recovered.id.ToString());
  damage.records = std::move(records);
  MUSTER_RETURN_IF_ERROR(session_->Found(std::move(damage)));
  session_->Put(kMeta, key, EncodeQueue(recovered, key));
  queues_[number].record = std::move(recovered);
  return absl::OkStatus();
}

absl::StatusOr<QueueFacts*> QueueCatalog::Find(uint64_t number,
                                               absl::FunctionRef<bool()> shows_it_was_there) {
  if (const auto queue = queues_.find(number); queue != queues_.end()) return &queue->second;
  if (number == 0 || number >= kPoisonBodies || !shows_it_was_there()) return nullptr;
  MUSTER_RETURN_IF_ERROR(Recover(number, "it is not there", {}));
  return &queues_[number];
}

absl::Status QueueCatalog::Finish() {
  MUSTER_RETURN_IF_ERROR(CheckStore());
  for (const auto& [number, queue] : queues_) {
    MUSTER_RETURN_IF_ERROR(CheckCounters(number, queue));
  }
  return absl::OkStatus();
}

absl::Status QueueCatalog::CheckStore() {
  if (store_.has_value() && store_->next_queue > last_queue_) return absl::OkStatus();
  const bool is_new = damaged_store_.empty() && last_queue_ == 0;
  if (!store_.has_value() && is_new) return absl::OkStatus();
  Damage damage{.kind = "store", .name = "the store record"};
  StoreRecord mended = store_.value_or(StoreRecord());
  if (store_.has_value()) {
    damage.why = absl::StrCat("it would give number ", last_queue_, " to another queue");
    damage.remedy = absl::StrCat("the next queue gets number ", last_queue_ + 1);
  } else {
    damage.why = damaged_store_.empty() ? "it is not there" : "it is damaged";
    damage.remedy = "is made again: ids of messages change";
    mended.salt = static_cast<uint64_t>(now_us_) << 20;
    mended.epoch = (last_lease_ >> kLeaseCounterBits) + 1;
  }
  mended.next_queue = last_queue_ + 1;
  if (!damaged_store_.empty())
    damage.records = {session_->Stored(kMeta, StoreKey(), damaged_store_)};
  MUSTER_RETURN_IF_ERROR(session_->Found(std::move(damage)));
  session_->Put(kMeta, StoreKey(), EncodeStore(mended));
  return absl::OkStatus();
}

// No total includes cleared or purged messages, so there may be fewer messages than the totals say.
absl::Status QueueCatalog::CheckCounters(uint64_t number, const QueueFacts& queue) {
  const Counters counters = queue.counters.value_or(Counters());
  const int64_t known = counters.in - counters.out - counters.expired;
  Damage damage{.kind = "counters", .name = NameOf(queue)};
  if (!queue.damaged_counters.empty()) {
    damage.why = "they are damaged";
    damage.records = {session_->Stored(kMeta, CountersKey(number), queue.damaged_counters)};
  } else if (counters.next_seq < queue.next_seq) {
    damage.why = absl::StrCat("they would give sequence ", counters.next_seq, " again; ",
                              queue.next_seq - 1, " was given");
  } else if (known < queue.messages) {
    damage.why =
        absl::StrCat("they know of ", known, " messages, and ", queue.messages, " are there");
  } else {
    return absl::OkStatus();
  }
  damage.remedy = "are made again of what is there";
  MUSTER_RETURN_IF_ERROR(session_->Found(std::move(damage)));
  Counters mended = counters;
  mended.in += std::max<int64_t>(0, queue.messages - known);
  mended.next_seq = std::max(counters.next_seq, queue.next_seq);
  session_->Put(kMeta, CountersKey(number), EncodeCounters(mended));
  return absl::OkStatus();
}

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
