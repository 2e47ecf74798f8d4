#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/failpoint.h"
#include "muster/base/status_macros.h"
#include "muster/queue/rocksdb/durable_queue.h"
#include "muster/queue/rocksdb/ids.h"

namespace muster::queue::rocksdb {

absl::StatusOr<std::vector<queue::Message>> DurableQueue::Receive(
    const queue::ReceiveOptions& options) {
  // Damaged messages at the head must not look like an empty queue.
  while (true) {
    bool set_aside = false;
    MUSTER_ASSIGN_OR_RETURN(auto messages, ReceiveOnce(options, &set_aside));
    if (!messages.empty() || !set_aside) return messages;
  }
}

absl::StatusOr<std::vector<queue::Message>> DurableQueue::ReceiveOnce(
    const queue::ReceiveOptions& options, bool* set_aside) {
  SharedEntry writing(&gate_);
  MUSTER_ASSIGN_OR_RETURN(Claims claims, Lease(options));
  CollectGarbage();
  if (claims.taken.empty()) return std::vector<queue::Message>();
  absl::StatusOr<std::vector<Fetched>> fetched = Fetch(claims.taken);
  if (!fetched.ok()) {
    CheckInAll(claims.taken, fetched.status());
    return fetched.status();
  }
  std::vector<Claim> good, damaged;
  std::vector<queue::Message> messages;
  ::rocksdb::WriteBatch batch;
  for (Claim& claim : claims.taken) {
    Fetched& found = (*fetched)[claim.slot];
    if (found.damage.has_value()) {
      const queue::Cause cause{*found.damage, claim.before.attempts, "", FromUs(claims.now_us)};
      BuryMessage(&batch, claim, found.body, cause);
      damaged.push_back(claim);
    } else {
      if (storage_->keeps_leases()) PutState(&batch, claim.seq, claim.after);
      messages.push_back(ToMessage(claim.seq, claim.after, std::move(found.body)));
      messages.back().receipt = EncodeReceipt(storage_->salt(), {claim.seq, claim.after.lease});
      good.push_back(claim);
    }
  }
  // A lease needs no sync: losing it in a power cut only shows the message again.
  const absl::Status written = batch.Count() == 0
                                   ? storage_->CheckWorks()
                                   : storage_->Write(&batch, muster::rocksdb::Durability::kProcess);
  MUSTER_FAILPOINT("queue.after_lease");
  CheckInAll(good, written);
  BuryAll(damaged, written);
  MUSTER_RETURN_IF_ERROR(written);
  *set_aside = !damaged.empty();
  return messages;
}

absl::StatusOr<DurableQueue::Claims> DurableQueue::Lease(const queue::ReceiveOptions& options) {
  CatchUp();
  base::MutexLock lock(&mu_);
  MUSTER_RETURN_IF_ERROR(CheckAliveLocked());
  Claims claims;
  claims.now_us = storage_->NowUs();
  ExpireLocked(claims.now_us);
  for (const uint64_t seq : index_.Ready(claims.now_us, options.max_messages)) {
    Claim claim;
    claim.slot = claims.taken.size();
    claim.seq = seq;
    claim.before = index_.CheckOut(seq);
    claim.after = claim.before;
    claim.after.lease = storage_->NextLease();
    claim.after.visible_us = claims.now_us + absl::ToInt64Microseconds(options.visibility);
    ++claim.after.dequeue_count;
    const bool suspect = claim.before.has(kBegan) || claim.before.has(kSuspect);
    claim.after.flags =
        static_cast<uint8_t>((claim.before.flags & kDamaged) | kHeld | (suspect ? kSuspect : 0));
    claims.taken.push_back(claim);
  }
  return claims;
}

absl::StatusOr<std::vector<DurableQueue::Fetched>> DurableQueue::Fetch(
    const std::vector<Claim>& claims) const {
  std::vector<std::string> keys;
  for (const Claim& claim : claims) keys.push_back(MessageKey(number_, claim.seq));
  std::vector<ReadResult> reads = storage_->ReadAll(kBody, keys);
  std::vector<Fetched> fetched(claims.size());
  for (size_t i = 0; i < claims.size(); ++i) {
    ReadResult& read = reads[i];
    if (!read.status.ok() && !absl::IsNotFound(read.status) && !absl::IsDataLoss(read.status)) {
      return absl::UnavailableError(
          absl::StrCat(NameOf(claims[i].seq), ": ", read.status.message()));
    }
    const bool body_sound = read.status.ok() && StripToBody(&read.value, keys[i]);
    const bool state_sound = !claims[i].before.has(kDamaged);
    if (!body_sound || !state_sound) {
      fetched[i].damage = absl::StrCat("DATA_LOSS: ", NameOf(claims[i].seq), ": its ",
                                       state_sound ? "body" : "state", " record is damaged");
    }
    fetched[i].body = body_sound ? std::move(read.value) : std::string(SalvageBody(read.value));
  }
  return fetched;
}

queue::Message DurableQueue::ToMessage(uint64_t seq, const MessageState& state,
                                       std::string body) const {
  queue::Message message;
  message.message_id = MessageId(seq);
  message.body = std::move(body);
  message.insertion_time = FromUs(state.insertion_us);
  message.expiration_time = FromUs(state.expiry_us);
  message.next_visible_time = FromUs(state.visible_us);
  message.dequeue_count = static_cast<int>(state.dequeue_count);
  message.attempts = state.attempts;
  message.interrupted = state.has(kSuspect);
  return message;
}

absl::StatusOr<std::vector<queue::Message>> DurableQueue::Peek(int max_messages) {
  CatchUp();
  std::vector<Claim> shown;
  {
    base::MutexLock lock(&mu_);
    MUSTER_RETURN_IF_ERROR(CheckAliveLocked());
    const int64_t now_us = storage_->NowUs();
    ExpireLocked(now_us);
    for (const uint64_t seq : index_.Ready(now_us, max_messages)) {
      shown.push_back({0, seq, *index_.Find(seq), {}});
    }
  }
  MUSTER_ASSIGN_OR_RETURN(std::vector<Fetched> fetched, Fetch(shown));
  std::vector<queue::Message> messages;
  for (size_t i = 0; i < shown.size(); ++i) {
    // Nothing holds the message: it may have been deleted since. A damaged one waits for a receive
    // to set it aside.
    if (fetched[i].damage.has_value()) continue;
    MessageState state = shown[i].before;
    if (state.has(kBegan)) state.flags |= kSuspect;
    messages.push_back(ToMessage(shown[i].seq, state, std::move(fetched[i].body)));
  }
  return messages;
}

}  // namespace muster::queue::rocksdb
