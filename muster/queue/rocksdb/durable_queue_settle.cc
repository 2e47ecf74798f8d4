#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/failpoint.h"
#include "muster/base/status_macros.h"
#include "muster/queue/limits.h"
#include "muster/queue/rocksdb/durable_queue.h"
#include "muster/queue/rocksdb/ids.h"

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

// The holder's say on the attempt that it began; see UpdateRequest.
void EndAttempt(const queue::UpdateRequest& request, MessageState* state) {
  if (!request.attempt_ended) return;
  const bool began = state->has(kBegan);
  state->flags = static_cast<uint8_t>(state->flags & ~kHeld);
  // A holder that began nothing learnt nothing: the suspicion of an earlier lease stays.
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

absl::StatusOr<std::vector<absl::Status>> DurableQueue::Delete(
    absl::Span<const queue::Receipt> receipts) {
  SharedEntry writing(&gate_);
  MUSTER_ASSIGN_OR_RETURN(const Claims claims, ClaimAll(PointersTo(receipts), Lapsed::kAccept));
  ::rocksdb::WriteBatch batch;
  for (const Claim& claim : claims.taken) DeleteMessage(&batch, claim.seq);
  Counters delta;
  delta.out = static_cast<int64_t>(claims.taken.size());
  const absl::Status written =
      WriteClaims(claims, &batch, delta, muster::rocksdb::Durability::kPower);
  MUSTER_FAILPOINT("queue.after_delete");
  std::vector<absl::Status> results(receipts.size(), written);
  for (const Refusal& refusal : claims.refused) results[refusal.slot] = refusal.status;
  if (!written.ok()) {
    CheckInAll(claims.taken, written);
    return results;
  }
  base::MutexLock lock(&mu_);
  for (const Claim& claim : claims.taken) index_.Erase(claim.seq);
  counters_.out += delta.out;
  return results;
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

absl::StatusOr<DurableQueue::Claims> DurableQueue::ClaimAll(
    const std::vector<const queue::Receipt*>& receipts, Lapsed lapsed) {
  base::MutexLock lock(&mu_);
  MUSTER_RETURN_IF_ERROR(CheckAliveLocked());
  Claims claims;
  claims.now_us = storage_->NowUs();
  ExpireLocked(claims.now_us);
  for (size_t slot = 0; slot < receipts.size(); ++slot) {
    absl::StatusOr<Claim> claim = ClaimLocked(*receipts[slot], lapsed, &claims);
    if (claim.ok()) {
      claim->slot = slot;
      claims.taken.push_back(*claim);
    } else {
      claims.refused.push_back({slot, claim.status()});
    }
  }
  return claims;
}

absl::StatusOr<DurableQueue::Claim> DurableQueue::ClaimLocked(const queue::Receipt& receipt,
                                                              Lapsed lapsed, Claims* claims) {
  const std::optional<ReceiptParts> parts = DecodeReceipt(storage_->salt(), receipt);
  if (!parts.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("queue '", id_.ToString(), "' never gave the receipt '", receipt, "'"));
  }
  const MessageState* state = index_.Find(parts->seq);
  // An expired one that no step has come to yet is gone, too; but not one that a call has out.
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
  // A delayed put's receipt, or that of a holder who let go: it settles, but there is no lease.
  if (lapsed == Lapsed::kRefuse && !state->has(kHeld)) {
    ++claims->stale;
    return absl::FailedPreconditionError(
        absl::StrCat(NameOf(parts->seq), ": nobody holds the lease of receipt '", receipt, "'"));
  }
  Claim claim;
  claim.seq = parts->seq;
  claim.before = index_.CheckOut(parts->seq);
  claim.after = claim.before;
  return claim;
}

absl::Status DurableQueue::WriteClaims(const Claims& claims, ::rocksdb::WriteBatch* batch,
                                       Counters delta, muster::rocksdb::Durability durability) {
  if (claims.stale > 0) {
    base::MutexLock lock(&mu_);
    counters_.stale += claims.stale;
  }
  delta.stale = claims.stale;
  if (delta.out > 0 || delta.stale > 0) AddToCounters(batch, delta);
  if (batch->Count() == 0) return absl::OkStatus();
  // Only a figure for people is in it when every receipt was refused.
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
