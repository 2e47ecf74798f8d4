// SPDX-License-Identifier: Apache-2.0
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

}  // namespace muster::queue::rocksdb
