// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/failpoint.h"
#include "muster/base/status.h"
#include "muster/queue/limits.h"
#include "muster/queue/rocksdb/codec.h"
#include "muster/queue/rocksdb/durable_queue.h"

namespace muster::queue::rocksdb {

namespace {

// Number of bodies read and written in one step; bounds memory and the size of the batch.
constexpr size_t kPoisonStep = 64;

int64_t ExpiryAfter(int64_t now_us, int64_t ttl_us) {
  return ttl_us == kNeverUs ? kNeverUs : now_us + ttl_us;
}

}  // namespace

void DurableQueue::BuryMessage(::rocksdb::WriteBatch* batch, const Claim& claim,
                               absl::string_view body, const queue::Cause& cause) const {
  const MessageState& state = claim.before;
  PoisonRecord poison;
  poison.insertion_us = state.insertion_us;
  poison.ttl_us = state.expiry_us == kNeverUs ? kNeverUs : state.expiry_us - state.insertion_us;
  poison.time_us = absl::ToUnixMicros(cause.time);
  poison.attempts = cause.attempts;
  poison.reason = queue::CutReason(cause.reason);
  poison.holder = queue::CutReason(cause.holder);
  const std::string key = MessageKey(number_, claim.seq);
  batch->Put(storage_->family(kPoison), key, EncodePoison(poison, key));
  PutBody(batch, storage_->family(kBody), PoisonBodyKey(number_, claim.seq), body);
  // Damage to the state hides whether there is a note.
  DeleteMessage(batch, claim.seq, state.has(kNoted) || state.has(kDamaged));
}

void DurableQueue::BuryAll(const std::vector<Claim>& claims, const absl::Status& written) {
  if (!written.ok()) return CheckInAll(claims, written);
  base::MutexLock lock(&mu_);
  for (const Claim& claim : claims) {
    index_.Erase(claim.seq);
    poison_.insert(claim.seq);
  }
}

absl::StatusOr<std::optional<queue::PoisonMessage>> DurableQueue::ReadPoison(uint64_t seq) const {
  const std::string key = MessageKey(number_, seq);
  const std::string body_key = PoisonBodyKey(number_, seq);
  const ReadResult cause = storage_->Read(kPoison, key);
  ReadResult body = storage_->Read(kBody, body_key);
  // The message was redriven or purged after its sequence was looked up.
  if (absl::IsNotFound(cause.status) && absl::IsNotFound(body.status)) return std::nullopt;
  for (const absl::Status& status : {cause.status, body.status}) {
    if (!status.ok() && !absl::IsDataLoss(status) && !absl::IsNotFound(status)) return status;
  }
  queue::PoisonMessage message;
  message.message_id = MessageId(seq);
  const std::optional<PoisonRecord> record =
      cause.status.ok() ? DecodePoison(cause.value, key) : std::nullopt;
  if (record.has_value()) {
    message.insertion_time = FromUs(record->insertion_us);
    message.cause = {record->reason, record->attempts, record->holder, FromUs(record->time_us)};
  } else {
    message.cause.reason =
        absl::StrCat("DATA_LOSS: ", NameOf(seq), ": its poison record is damaged");
  }
  if (!StripToBody(&body.value, body_key)) {
    body.value = std::string(SalvageBody(body.value));
    absl::StrAppend(&message.cause.reason, "; DATA_LOSS: ", NameOf(seq),
                    ": its poison body is damaged");
  }
  message.body = std::move(body.value);
  return message;
}

absl::StatusOr<int64_t> DurableQueue::Redrive(absl::Span<const std::string> message_ids,
                                              int64_t max_messages) {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<uint64_t> chosen,
                          ChoosePoison(message_ids, max_messages));
  int64_t redriven = 0;
  const absl::Span<const uint64_t> all(chosen);
  for (size_t from = 0; from < all.size(); from += kPoisonStep) {
    const absl::StatusOr<int64_t> some = RedriveSome(all.subspan(from, kPoisonStep));
    // Earlier steps are durable: return their count now. The caller sees the failure on its next
    // call.
    if (!some.ok() && redriven > 0) return redriven;
    MUSTER_RETURN_IF_ERROR(some.status());
    redriven += *some;
  }
  return redriven;
}

absl::StatusOr<std::vector<uint64_t>> DurableQueue::ChoosePoison(
    absl::Span<const std::string> message_ids, int64_t max_messages) {
  std::vector<uint64_t> chosen;
  base::MutexLock lock(&mu_);
  MUSTER_RETURN_IF_ERROR(CheckAliveLocked());
  const auto limit = static_cast<size_t>(std::max<int64_t>(0, max_messages));
  if (message_ids.empty()) {
    for (auto it = poison_.begin(); it != poison_.end() && chosen.size() < limit; ++it) {
      chosen.push_back(*it);
    }
    return chosen;
  }
  for (const std::string& id : message_ids) {
    const auto seq = SequenceOf(storage_->salt(), number_, id);
    if (seq.has_value()) chosen.push_back(*seq);
  }
  std::sort(chosen.begin(), chosen.end());
  chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
  return chosen;
}

absl::StatusOr<std::vector<uint64_t>> DurableQueue::StillPoison(absl::Span<const uint64_t> seqs) {
  std::vector<uint64_t> still;
  base::MutexLock lock(&mu_);
  MUSTER_RETURN_IF_ERROR(CheckAliveLocked());
  for (const uint64_t seq : seqs) {
    if (poison_.contains(seq)) still.push_back(seq);
  }
  return still;
}

absl::StatusOr<int64_t> DurableQueue::RedriveSome(absl::Span<const uint64_t> seqs) {
  // Exclusive, so that no message is redriven twice or purged during its redrive. Only for one
  // step, so that holders can extend their leases between the steps.
  ExclusiveEntry alone(&gate_);
  MUSTER_ASSIGN_OR_RETURN(const std::vector<uint64_t> still, StillPoison(seqs));
  const int64_t now_us = storage_->NowUs();
  ::rocksdb::WriteBatch batch;
  std::vector<std::pair<uint64_t, MessageState>> ready;
  for (const uint64_t seq : still) {
    const std::string key = MessageKey(number_, seq);
    const std::string body_key = PoisonBodyKey(number_, seq);
    const ReadResult cause = storage_->Read(kPoison, key);
    ReadResult body = storage_->Read(kBody, body_key);
    const auto record = cause.status.ok() ? DecodePoison(cause.value, key) : std::nullopt;
    // A redrive would only set a damaged message aside again, so it stays poison for an operator to
    // inspect.
    if (!record.has_value() || !body.status.ok() || !StripToBody(&body.value, body_key)) continue;
    MessageState state;
    state.insertion_us = record->insertion_us;
    state.visible_us = now_us;
    state.expiry_us = ExpiryAfter(now_us, record->ttl_us);
    state.lease = storage_->NextLease();
    PutState(&batch, seq, state);
    PutBody(&batch, storage_->family(kBody), key, body.value);
    batch.Delete(storage_->family(kPoison), key);
    batch.Delete(storage_->family(kBody), body_key);
    ready.emplace_back(seq, state);
  }
  if (ready.empty()) return 0;
  MUSTER_RETURN_IF_ERROR(storage_->Write(&batch, muster::rocksdb::Durability::kPower));
  MUSTER_FAILPOINT("queue.after_redrive");
  base::MutexLock lock(&mu_);
  for (const auto& [seq, state] : ready) {
    poison_.erase(seq);
    // A repair of the files may have brought the message back beside its poison record.
    if (index_.Find(seq) != nullptr) {
      index_.CheckOut(seq);
      index_.CheckIn(seq, state, now_us);
    } else {
      index_.Insert(seq, state, now_us);
    }
  }
  return static_cast<int64_t>(ready.size());
}

}  // namespace muster::queue::rocksdb
