// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
#include "muster/base/failpoint.h"
#include "muster/base/status.h"
#include "muster/queue/limits.h"
#include "muster/queue/rocksdb/codec.h"
#include "muster/queue/rocksdb/durable_queue.h"

namespace muster::queue::rocksdb {

namespace {

int64_t ExpiryOf(int64_t now_us, absl::Duration ttl) {
  // A lifetime beyond the year 9999 counts as unlimited; the addition must not overflow.
  constexpr absl::Duration kForEver = absl::Hours(24 * 365 * 8000);
  return ttl >= kForEver ? kNeverUs : now_us + absl::ToInt64Microseconds(ttl);
}

// The state that the first put of a dedup id wrote.
MessageState FirstState(const DedupRecord& dedup) {
  MessageState state;
  state.insertion_us = dedup.put_us;
  state.visible_us = dedup.visible_us;
  state.expiry_us = dedup.expiry_us;
  state.lease = dedup.lease;
  return state;
}

size_t BytesOf(absl::Span<const queue::NewMessage> messages) {
  constexpr size_t kRecordsBytes = 160;  // keys, state and headers of one message
  size_t bytes = 0;
  for (const queue::NewMessage& message : messages) bytes += message.body.size() + kRecordsBytes;
  return bytes;
}

std::vector<std::string> DedupIdsOf(absl::Span<const queue::NewMessage> messages) {
  std::vector<std::string> ids;
  ids.reserve(messages.size());
  for (const queue::NewMessage& message : messages) ids.push_back(message.dedup_id);
  return ids;
}

}  // namespace

DurableQueue::PutSteps::PutSteps(DurableQueue* queue, absl::Span<const queue::NewMessage> messages)
    : queue_(queue),
      messages_(messages),
      writing_(&queue->gate_),
      reservation_(&queue->dedup_ids_, DedupIdsOf(messages)) {}

absl::Status DurableQueue::PutSteps::Plan(::rocksdb::WriteBatch* batch) {
  MUSTER_ASSIGN_OR_RETURN(const auto known, reservation_.LookUp());
  {
    base::MutexLock lock(&queue_->mu_);
    MUSTER_RETURN_IF_ERROR(queue_->PlanPutLocked(messages_, known, &plan_));
  }
  queue_->AddPut(messages_, plan_, batch);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<queue::PutResult>> DurableQueue::PutSteps::Finish(
    const absl::Status& written) {
  MUSTER_RETURN_IF_ERROR(written);
  MUSTER_FAILPOINT("queue.after_put");
  std::vector<queue::PutResult> results = queue_->PublishPut(plan_);
  queue_->CollectGarbage();
  return results;
}

absl::StatusOr<std::vector<queue::PutResult>> DurableQueue::Put(
    absl::Span<const queue::NewMessage> messages) {
  std::vector<queue::PutResult> results;
  {
    PutSteps steps(this, messages);
    ::rocksdb::WriteBatch batch(BytesOf(messages));
    MUSTER_RETURN_IF_ERROR(steps.Plan(&batch));
    MUSTER_ASSIGN_OR_RETURN(results, steps.Finish(storage_->WriteAny(&batch, steps.durability())));
  }
  SweepDedupIfDue(messages);
  return results;
}

absl::Status DurableQueue::PlanPutLocked(absl::Span<const queue::NewMessage> messages,
                                         const std::vector<std::optional<DedupRecord>>& known,
                                         std::vector<Planned>* plan) {
  MUSTER_RETURN_IF_ERROR(CheckAliveLocked());
  MUSTER_CHECK(known.size() == messages.size(), "ids ", known.size(), ", messages ",
               messages.size());
  // A difference, because a damaged key may have brought next_seq near to its end.
  if (counters_.next_seq > kMaxSequence - messages.size()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("queue '", id_.ToString(), "' has used up its sequence numbers"));
  }
  const int64_t now_us = storage_->NowUs();
  ExpireLocked(now_us);
  absl::flat_hash_map<absl::string_view, size_t> in_this_call;  // places in the plan
  for (size_t i = 0; i < messages.size(); ++i) {
    const queue::NewMessage& message = messages[i];
    if (known[i].has_value() && IsDuplicateLocked(*known[i], now_us)) {
      plan->push_back({known[i]->seq, true, FirstState(*known[i])});
      continue;
    }
    if (!message.dedup_id.empty()) {
      const auto [it, is_new] = in_this_call.emplace(message.dedup_id, plan->size());
      if (!is_new) {
        const Planned first = (*plan)[it->second];
        plan->push_back({first.seq, true, first.state});
        continue;
      }
    }
    MUSTER_DCHECK(absl::ZeroDuration() <= message.delay && message.delay < message.ttl, "delay ",
                  absl::FormatDuration(message.delay), ", ttl ", absl::FormatDuration(message.ttl));
    MessageState state;
    state.insertion_us = now_us;
    state.visible_us = now_us + absl::ToInt64Microseconds(message.delay);
    state.expiry_us = ExpiryOf(now_us, message.ttl);
    state.lease = storage_->NextLease();
    plan->push_back({counters_.next_seq++, false, state});
  }
  return absl::OkStatus();
}

bool DurableQueue::IsDuplicateLocked(const DedupRecord& dedup, int64_t now_us) const {
  const std::optional<absl::Duration> window = queue::DedupWindowOf(record_.metadata);
  if (window.has_value()) {
    return dedup.seq >= record_.dedup_floor &&
           now_us - dedup.put_us < absl::ToInt64Microseconds(*window);
  }
  if (poison_.contains(dedup.seq)) return true;
  // After damage to the counters the engine may have used a sequence twice: then this is another
  // message.
  const MessageState* state = index_.Find(dedup.seq);
  if (state != nullptr && (state->insertion_us == dedup.put_us || state->has(kDamaged)))
    return true;
  if (dedup.seq < record_.dedup_floor) return false;
  return now_us - dedup.put_us < absl::ToInt64Microseconds(queue::kDedupWindow);
}

void DurableQueue::AddPut(absl::Span<const queue::NewMessage> messages,
                          const std::vector<Planned>& plan, ::rocksdb::WriteBatch* batch) const {
  MUSTER_CHECK(plan.size() == messages.size(), "planned ", plan.size(), ", messages ",
               messages.size());
  Counters delta;
  for (size_t i = 0; i < plan.size(); ++i) {
    if (plan[i].duplicate) continue;
    const uint64_t seq = plan[i].seq;
    PutState(batch, seq, plan[i].state);
    PutBody(batch, storage_->family(kBody), MessageKey(number_, seq), messages[i].body);
    if (!messages[i].dedup_id.empty()) {
      const MessageState& state = plan[i].state;
      dedup_ids_.Write(batch, messages[i].dedup_id,
                       {seq, state.insertion_us, state.lease, state.visible_us, state.expiry_us});
    }
    ++delta.in;
    delta.next_seq = seq + 1;
  }
  if (delta.in > 0) AddToCounters(batch, delta);
}

std::vector<queue::PutResult> DurableQueue::PublishPut(const std::vector<Planned>& plan) {
  const uint64_t salt = storage_->salt();
  std::vector<queue::PutResult> results(plan.size());
  for (size_t i = 0; i < plan.size(); ++i) {
    results[i].message_id = MessageId(plan[i].seq);
    results[i].duplicate = plan[i].duplicate;
    results[i].position = plan[i].seq;
    const MessageState& state = plan[i].state;
    if (plan[i].duplicate && state.lease == 0) continue;
    results[i].receipt = EncodeReceipt(salt, {plan[i].seq, state.lease});
    results[i].insertion_time = FromUs(state.insertion_us);
    results[i].expiration_time = FromUs(state.expiry_us);
    results[i].next_visible_time = FromUs(state.visible_us);
  }
  base::MutexLock lock(&mu_);
  const int64_t now_us = storage_->NowUs();
  for (const Planned& planned : plan) {
    if (planned.duplicate) continue;
    index_.Insert(planned.seq, planned.state, now_us);
    ++counters_.in;
  }
  return results;
}

void DurableQueue::SweepDedupIfDue(absl::Span<const queue::NewMessage> messages) {
  const auto ids =
      std::count_if(messages.begin(), messages.end(),
                    [](const queue::NewMessage& message) { return !message.dedup_id.empty(); });
  if (dedup_ids_.SweepIsDue(static_cast<size_t>(ids))) SweepDedup();
}

void DurableQueue::SweepDedup() {
  ExclusiveEntry alone(&gate_);
  dedup_ids_.Sweep([this](const DedupRecord& dedup) {
    base::MutexLock lock(&mu_);
    return !deleted_ && !IsDuplicateLocked(dedup, storage_->NowUs());
  });
}

absl::StatusOr<std::vector<queue::Message>> DurableQueue::Receive(
    const queue::ReceiveOptions& options) {
  // Retry when a pass set damaged messages aside: the result must not look like an empty queue.
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
      messages.push_back(ToMessage(claim.seq, claim.after, std::move(found.body)));
      const absl::Status noted = NoteHolder(&batch, options.holder, &claim, &messages.back());
      if (!noted.ok()) {
        CheckInAll(claims.taken, noted);
        return noted;
      }
      if (storage_->keeps_leases()) PutState(&batch, claim.seq, claim.after);
      messages.back().receipt = EncodeReceipt(storage_->salt(), {claim.seq, claim.after.lease});
      good.push_back(claim);
    }
  }
  // A lease needs no sync: if a power cut loses it, the message is only delivered again.
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
  MUSTER_CHECK(1 <= options.max_messages && options.max_messages <= queue::kMaxReceive,
               "max_messages ", options.max_messages);
  MUSTER_CHECK(queue::kMinReceiveVisibility <= options.visibility &&
                   options.visibility <= queue::kMaxVisibility,
               "visibility ", absl::FormatDuration(options.visibility));
  CatchUp();
  base::MutexLock lock(&mu_);
  MUSTER_RETURN_IF_ERROR(CheckAliveLocked());
  Claims claims;
  claims.now_us = storage_->NowUs();
  ExpireLocked(claims.now_us);
  for (const uint64_t seq : index_.Ready(claims.now_us, options.max_messages)) {
    Claim claim = CheckOutLocked(seq);
    claim.slot = claims.taken.size();
    claim.after.lease = storage_->NextLease();
    claim.after.visible_us = claims.now_us + absl::ToInt64Microseconds(options.visibility);
    ++claim.after.dequeue_count;
    const bool suspect = claim.before.has(kBegan) || claim.before.has(kSuspect);
    claim.after.flags = static_cast<uint8_t>((claim.before.flags & (kDamaged | kNoted)) | kHeld |
                                             (suspect ? kSuspect : 0));
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
  message.position = seq;
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
    // Peek does not check messages out, so the message may have been deleted since. A damaged
    // message stays until a receive sets it aside.
    if (fetched[i].damage.has_value()) continue;
    MessageState state = shown[i].before;
    if (state.has(kBegan)) state.flags |= kSuspect;
    messages.push_back(ToMessage(shown[i].seq, state, std::move(fetched[i].body)));
  }
  return messages;
}

absl::StatusOr<std::vector<DurableQueue::Claim>> DurableQueue::StoredFrom(uint64_t from, int max) {
  CatchUp();
  std::vector<Claim> stored;
  base::MutexLock lock(&mu_);
  MUSTER_RETURN_IF_ERROR(CheckAliveLocked());
  for (const uint64_t seq : index_.From(from, storage_->NowUs(), max)) {
    stored.push_back({0, seq, *index_.Find(seq), {}});
  }
  return stored;
}

// A message whose body is gone was deleted since the index was read, or is damaged. It may be left
// out once the index was read after that: only then does the index have the copy that was put
// before the message was deleted. Until then the index is read again from its place on.
absl::StatusOr<std::vector<queue::StoredMessage>> DurableQueue::Scan(uint64_t from, int max) {
  std::vector<queue::StoredMessage> messages;
  absl::flat_hash_set<uint64_t> gone;
  size_t bytes = 0;
  for (int left = max; left > 0 && bytes < queue::kMaxScanBytes;
       left = max - static_cast<int>(messages.size())) {
    MUSTER_ASSIGN_OR_RETURN(const std::vector<Claim> stored,
                            StoredFrom(from, std::min(left, queue::kMaxReceive)));
    if (stored.empty()) break;
    MUSTER_ASSIGN_OR_RETURN(std::vector<Fetched> fetched, Fetch(stored));
    for (size_t i = 0; i < stored.size(); ++i) {
      const uint64_t seq = stored[i].seq;
      const bool is_gone = fetched[i].damage.has_value();
      if (is_gone && gone.insert(seq).second) break;
      from = seq + 1;
      if (is_gone) continue;
      bytes += fetched[i].body.size();
      messages.push_back({MessageId(seq), std::move(fetched[i].body), seq});
    }
  }
  return messages;
}

}  // namespace muster::queue::rocksdb
