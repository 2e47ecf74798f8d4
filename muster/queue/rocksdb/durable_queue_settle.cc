// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
#include "muster/base/failpoint.h"
#include "muster/base/status.h"
#include "muster/queue/limits.h"
#include "muster/queue/rocksdb/codec.h"
#include "muster/queue/rocksdb/durable_queue.h"

namespace muster::queue::rocksdb {

namespace {

std::vector<const queue::Receipt*> PointersTo(absl::Span<const queue::Receipt> receipts) {
  std::vector<const queue::Receipt*> pointers;
  for (const queue::Receipt& receipt : receipts) pointers.push_back(&receipt);
  return pointers;
}

template <typename Request>
std::vector<const queue::Receipt*> ReceiptsOf(absl::Span<const Request> requests) {
  std::vector<const queue::Receipt*> pointers;
  for (const Request& request : requests) pointers.push_back(&request.receipt);
  return pointers;
}

template <typename T>
absl::StatusOr<T> ValueIf(const absl::Status& written, T value) {
  if (!written.ok()) return written;
  return value;
}

// Applies what the holder reports about the attempt that it began; see UpdateRequest.
void EndAttempt(const queue::UpdateRequest& request, MessageState* state) {
  MUSTER_CHECK(request.attempt_ended || !request.refund_attempt, "receipt ", request.receipt);
  if (!request.attempt_ended) return;
  const bool began = state->has(kBegan);
  state->flags = static_cast<uint8_t>(state->flags & ~kHeld);
  // A holder that began no attempt has not tested the message, so the suspicion from an earlier
  // lease stays.
  if (began) state->flags = static_cast<uint8_t>(state->flags & ~(kBegan | kSuspect));
  if (began && request.refund_attempt && state->attempts > 0) --state->attempts;
}

}  // namespace

absl::StatusOr<std::vector<absl::StatusOr<int>>> DurableQueue::BeginAttempt(
    absl::Span<const queue::Receipt> receipts) {
  SharedEntry writing(&gate_);
  MUSTER_ASSIGN_OR_RETURN(Claims claims, ClaimAll(PointersTo(receipts), Lapsed::kRefuse));
  ::rocksdb::WriteBatch batch;
  for (Claim& claim : claims.taken) {
    if (claim.after.attempts < UINT16_MAX) ++claim.after.attempts;
    claim.after.flags |= kBegan;
    PutState(&batch, claim.seq, claim.after);
  }
  const absl::Status written =
      WriteClaims(claims, &batch, Counters(), muster::rocksdb::Durability::kProcess);
  MUSTER_FAILPOINT("queue.after_begin");
  CheckInAll(claims.taken, written);
  std::vector<absl::StatusOr<int>> results(receipts.size(), 0);
  for (const Claim& claim : claims.taken) {
    results[claim.slot] = ValueIf(written, int{claim.after.attempts});
  }
  for (const Refusal& refusal : claims.refused) results[refusal.slot] = refusal.status;
  return results;
}

absl::StatusOr<std::vector<absl::StatusOr<queue::UpdateResult>>> DurableQueue::Update(
    absl::Span<const queue::UpdateRequest> requests) {
  SharedEntry writing(&gate_);
  MUSTER_ASSIGN_OR_RETURN(Claims claims, ClaimAll(ReceiptsOf(requests), Lapsed::kAccept));
  ::rocksdb::WriteBatch batch;
  for (Claim& claim : claims.taken) {
    const queue::UpdateRequest& request = requests[claim.slot];
    MUSTER_CHECK(
        absl::ZeroDuration() <= request.visibility && request.visibility <= queue::kMaxVisibility,
        "visibility ", absl::FormatDuration(request.visibility));
    claim.after.lease = storage_->NextLease();
    claim.after.visible_us = claims.now_us + absl::ToInt64Microseconds(request.visibility);
    EndAttempt(request, &claim.after);
    PutState(&batch, claim.seq, claim.after);
    if (request.body.has_value()) {
      PutBody(&batch, storage_->family(kBody), MessageKey(number_, claim.seq), *request.body);
    }
  }
  const absl::Status written =
      WriteClaims(claims, &batch, Counters(), muster::rocksdb::Durability::kPower);
  MUSTER_FAILPOINT("queue.after_update");
  CheckInAll(claims.taken, written);
  std::vector<absl::StatusOr<queue::UpdateResult>> results(requests.size(), queue::UpdateResult());
  for (const Claim& claim : claims.taken) {
    results[claim.slot] =
        ValueIf(written,
                queue::UpdateResult{EncodeReceipt(storage_->salt(), {claim.seq, claim.after.lease}),
                                    FromUs(claim.after.visible_us)});
  }
  for (const Refusal& refusal : claims.refused) results[refusal.slot] = refusal.status;
  return results;
}

DurableQueue::DeleteSteps::DeleteSteps(DurableQueue* queue,
                                       absl::Span<const queue::Receipt> receipts)
    : queue_(queue), receipts_(receipts), writing_(&queue->gate_) {}

absl::Status DurableQueue::DeleteSteps::Plan(::rocksdb::WriteBatch* batch) {
  MUSTER_ASSIGN_OR_RETURN(claims_, queue_->ClaimAll(PointersTo(receipts_), Lapsed::kAccept));
  for (const Claim& claim : claims_.taken) {
    queue_->DeleteMessage(batch, claim.seq, claim.before.has(kNoted));
  }
  Counters delta;
  delta.out = static_cast<int64_t>(claims_.taken.size());
  queue_->CountClaims(claims_, delta, batch);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<absl::Status>> DurableQueue::DeleteSteps::Finish(
    const absl::Status& written) {
  MUSTER_FAILPOINT("queue.after_delete");
  std::vector<absl::Status> results(receipts_.size(), written);
  for (const Refusal& refusal : claims_.refused) results[refusal.slot] = refusal.status;
  if (!written.ok()) {
    queue_->CheckInAll(claims_.taken, written);
    return results;
  }
  base::MutexLock lock(&queue_->mu_);
  for (const Claim& claim : claims_.taken) queue_->index_.Erase(claim.seq);
  queue_->counters_.out += static_cast<int64_t>(claims_.taken.size());
  return results;
}

absl::StatusOr<std::vector<absl::Status>> DurableQueue::Delete(
    absl::Span<const queue::Receipt> receipts) {
  DeleteSteps steps(this, receipts);
  ::rocksdb::WriteBatch batch;
  MUSTER_RETURN_IF_ERROR(steps.Plan(&batch));
  return steps.Finish(storage_->WriteAny(&batch, steps.durability()));
}

absl::StatusOr<std::vector<absl::Status>> DurableQueue::DeadLetter(
    absl::Span<const queue::DeadLetterRequest> requests) {
  SharedEntry writing(&gate_);
  MUSTER_ASSIGN_OR_RETURN(const Claims claims, ClaimAll(ReceiptsOf(requests), Lapsed::kAccept));
  absl::StatusOr<std::vector<Fetched>> bodies = Fetch(claims.taken);
  if (!bodies.ok()) {
    CheckInAll(claims.taken, bodies.status());
    return bodies.status();
  }
  ::rocksdb::WriteBatch batch;
  for (size_t i = 0; i < claims.taken.size(); ++i) {
    const Claim& claim = claims.taken[i];
    queue::Cause cause = requests[claim.slot].cause;
    if (cause.time == absl::Time()) cause.time = FromUs(claims.now_us);
    const Fetched& body = (*bodies)[i];
    if (body.damage.has_value()) absl::StrAppend(&cause.reason, "; ", *body.damage);
    BuryMessage(&batch, claim, body.body, cause);
  }
  const absl::Status written =
      WriteClaims(claims, &batch, Counters(), muster::rocksdb::Durability::kPower);
  MUSTER_FAILPOINT("queue.after_dead_letter");
  BuryAll(claims.taken, written);
  std::vector<absl::Status> results(requests.size(), written);
  for (const Refusal& refusal : claims.refused) results[refusal.slot] = refusal.status;
  return results;
}

absl::Status DurableQueue::Reclaim() {
  ExclusiveEntry alone(&gate_);
  CatchUp();
  std::vector<Claim> moved;
  {
    base::MutexLock lock(&mu_);
    MUSTER_RETURN_IF_ERROR(CheckAliveLocked());
    ExpireLocked(storage_->NowUs());
    moved = ClaimMovedLocked();
  }
  absl::Status written = absl::OkStatus();
  ::rocksdb::WriteBatch batch;
  for (const Claim& claim : moved) PutState(&batch, claim.seq, claim.after);
  // As little durable as the leases that it ends.
  if (batch.Count() > 0) written = storage_->Write(&batch, muster::rocksdb::Durability::kProcess);
  CheckInAll(moved, written);
  return written;
}

std::vector<DurableQueue::Claim> DurableQueue::ClaimMovedLocked() {
  std::vector<Claim> moved;
  for (const uint64_t seq : index_.Moved()) {
    Claim claim = CheckOutLocked(seq);
    claim.after.lease = storage_->NextLease();
    claim.after.visible_us = claim.before.insertion_us;
    // The next lease makes a suspect of what had begun.
    claim.after.flags = static_cast<uint8_t>(claim.before.flags & ~kHeld);
    moved.push_back(claim);
  }
  return moved;
}

DurableQueue::Claim DurableQueue::CheckOutLocked(uint64_t seq) {
  Claim claim;
  claim.seq = seq;
  claim.before = claim.after = index_.CheckOut(seq);
  return claim;
}

absl::StatusOr<DurableQueue::Claims> DurableQueue::ClaimEach(
    size_t slots, absl::FunctionRef<absl::StatusOr<Claim>(size_t slot, Claims*)> claim_one) {
  base::MutexLock lock(&mu_);
  MUSTER_RETURN_IF_ERROR(CheckAliveLocked());
  Claims claims;
  claims.now_us = storage_->NowUs();
  ExpireLocked(claims.now_us);
  for (size_t slot = 0; slot < slots; ++slot) {
    absl::StatusOr<Claim> claim = claim_one(slot, &claims);
    if (claim.ok()) {
      claim->slot = slot;
      claims.taken.push_back(*claim);
    } else {
      claims.refused.push_back({slot, claim.status()});
    }
  }
  return claims;
}

absl::StatusOr<DurableQueue::Claims> DurableQueue::ClaimAll(
    const std::vector<const queue::Receipt*>& receipts, Lapsed lapsed) {
  return ClaimEach(receipts.size(),
                   [&](size_t slot, Claims* claims) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
                     return ClaimLocked(*receipts[slot], lapsed, claims);
                   });
}

absl::StatusOr<DurableQueue::Claim> DurableQueue::ClaimLocked(const queue::Receipt& receipt,
                                                              Lapsed lapsed, Claims* claims) {
  const std::optional<ReceiptParts> parts = DecodeReceipt(storage_->salt(), receipt);
  if (!parts.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("queue '", id_.ToString(), "' never gave the receipt '", receipt, "'"));
  }
  const MessageState* state = index_.Find(parts->seq);
  // An expired message counts as gone even before a step removes it, unless another call has
  // checked it out.
  if (state != nullptr && state->expiry_us <= claims->now_us && !index_.IsOut(parts->seq)) {
    state = nullptr;
  }
  if (state == nullptr) return absl::NotFoundError(absl::StrCat(NameOf(parts->seq), " is gone"));
  if (state->lease != parts->lease) {
    ++claims->stale;
    return absl::FailedPreconditionError(
        absl::StrCat(NameOf(parts->seq), ": the lease of receipt '", receipt, "' was lost"));
  }
  if (index_.IsOut(parts->seq)) {
    return absl::UnavailableError(
        absl::StrCat(NameOf(parts->seq), " is being settled by another call"));
  }
  if (lapsed == Lapsed::kRefuse && state->visible_us <= claims->now_us) {
    ++claims->stale;
    return absl::FailedPreconditionError(
        absl::StrCat(NameOf(parts->seq), ": the lease of receipt '", receipt, "' has passed"));
  }
  // The receipt of a delayed put, or of a holder that gave the lease up: it may settle the message,
  // but there is no lease.
  if (lapsed == Lapsed::kRefuse && !state->has(kHeld)) {
    ++claims->stale;
    return absl::FailedPreconditionError(absl::StrCat(
        NameOf(parts->seq), ": no receiver holds the lease of receipt '", receipt, "'"));
  }
  return CheckOutLocked(parts->seq);
}

void DurableQueue::CountClaims(const Claims& claims, Counters delta, ::rocksdb::WriteBatch* batch) {
  if (claims.stale > 0) {
    base::MutexLock lock(&mu_);
    counters_.stale += claims.stale;
  }
  delta.stale = claims.stale;
  if (delta.out > 0 || delta.stale > 0) AddToCounters(batch, delta);
}

absl::Status DurableQueue::WriteClaims(const Claims& claims, ::rocksdb::WriteBatch* batch,
                                       Counters delta, muster::rocksdb::Durability durability) {
  CountClaims(claims, delta, batch);
  if (batch->Count() == 0) return absl::OkStatus();
  // When every receipt was refused the batch holds only a counter change, which needs no sync.
  if (claims.taken.empty()) durability = muster::rocksdb::Durability::kProcess;
  return storage_->Write(batch, durability);
}

void DurableQueue::CheckInAll(const std::vector<Claim>& claims, const absl::Status& written) {
  base::MutexLock lock(&mu_);
  const int64_t now_us = storage_->NowUs();
  for (const Claim& claim : claims) {
    index_.CheckIn(claim.seq, written.ok() ? claim.after : claim.before, now_us);
  }
}

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
