// SPDX-License-Identifier: Apache-2.0
#include "muster/queue/rocksdb/durable_queue.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/status.h"
#include "muster/queue/rocksdb/codec.h"
#include "muster/rocksdb/database.h"
#include "rocksdb/db.h"

namespace muster::queue::rocksdb {

namespace {

// Bounds the number of expired messages that one call deletes, to keep its pause near a
// millisecond.
constexpr size_t kGarbageStep = 256;

void DeleteNotesOf(uint64_t queue, Storage* storage, ::rocksdb::WriteBatch* batch) {
  batch->DeleteRange(storage->family(kMeta), NoteKey(queue, 0), NoteKey(queue + 1, 0));
}

void DeleteMessagesOf(uint64_t queue, FamilyIndex family, Storage* storage,
                      ::rocksdb::WriteBatch* batch) {
  batch->DeleteRange(storage->family(family), MessageKey(queue, 0), MessageKey(queue + 1, 0));
}

void DeletePoisonOf(uint64_t queue, Storage* storage, ::rocksdb::WriteBatch* batch) {
  DeleteMessagesOf(queue, kPoison, storage, batch);
  batch->DeleteRange(storage->family(kBody), PoisonBodyKey(queue, 0), PoisonBodyKey(queue + 1, 0));
}

}  // namespace

DurableQueue::DurableQueue(Storage* storage, uint64_t number, QueueRecord record)
    : storage_(storage),
      number_(number),
      id_(record.id),
      dedup_ids_(storage, number),
      record_(std::move(record)) {}

void DurableQueue::LoadMessage(uint64_t seq, const std::optional<MessageState>& state) {
  base::MutexLock lock(&mu_);
  const int64_t now_us = storage_->NowUs();
  MessageState loaded;
  if (state.has_value()) {
    loaded = *state;
  } else {
    // A damaged state: ready at once, so that the next receive finds the message and sets it aside.
    loaded.insertion_us = now_us;
    loaded.visible_us = now_us;
    loaded.flags = kDamaged;
  }
  index_.Insert(seq, loaded, now_us);
  counters_.next_seq = std::max(counters_.next_seq, seq + 1);
}

void DurableQueue::LoadPoison(uint64_t seq) {
  base::MutexLock lock(&mu_);
  poison_.insert(poison_.end(), seq);
  counters_.next_seq = std::max(counters_.next_seq, seq + 1);
}

void DurableQueue::LoadCounters(const Counters& counters) {
  base::MutexLock lock(&mu_);
  counters_.Add(counters);
}

void DurableQueue::LoadUsedSequence(uint64_t seq) {
  base::MutexLock lock(&mu_);
  counters_.next_seq = std::max(counters_.next_seq, seq + 1);
}

queue::Metadata DurableQueue::metadata() {
  base::MutexLock lock(&mu_);
  return record_.metadata;
}

absl::Status DurableQueue::SetMetadata(const queue::Metadata& metadata) {
  // Exclusive: otherwise two calls could leave the metadata of one on disk and that of the other in
  // memory.
  ExclusiveEntry alone(&gate_);
  QueueRecord record;
  {
    base::MutexLock lock(&mu_);
    MUSTER_RETURN_IF_ERROR(CheckAliveLocked());
    record = record_;
  }
  record.metadata = metadata;
  ::rocksdb::WriteBatch batch;
  const std::string key = QueueKey(number_);
  batch.Put(storage_->family(kMeta), key, EncodeQueue(record, key));
  MUSTER_RETURN_IF_ERROR(storage_->Write(&batch, muster::rocksdb::Durability::kPower));
  base::MutexLock lock(&mu_);
  record_ = std::move(record);
  return absl::OkStatus();
}

absl::Status DurableQueue::Destroy() {
  ExclusiveEntry alone(&gate_);
  {
    base::MutexLock lock(&mu_);
    MUSTER_RETURN_IF_ERROR(CheckAliveLocked());
  }
  ::rocksdb::WriteBatch batch;
  DeleteMessagesOf(number_, kState, storage_, &batch);
  DeleteMessagesOf(number_, kBody, storage_, &batch);
  DeleteNotesOf(number_, storage_, &batch);
  DeletePoisonOf(number_, storage_, &batch);
  batch.DeleteRange(storage_->family(kDedup), DedupKey(number_, ""), DedupKey(number_ + 1, ""));
  batch.Delete(storage_->family(kMeta), QueueKey(number_));
  batch.Delete(storage_->family(kMeta), CountersKey(number_));
  MUSTER_RETURN_IF_ERROR(storage_->Write(&batch, muster::rocksdb::Durability::kPower));
  base::MutexLock lock(&mu_);
  deleted_ = true;
  // What others may do before they let go of the queue writes nothing of it any more.
  index_.Clear();
  poison_.clear();
  garbage_.clear();
  return absl::OkStatus();
}

absl::Status DurableQueue::Clear() {
  ExclusiveEntry alone(&gate_);
  CatchUp();
  QueueRecord record;
  Counters delta;
  {
    base::MutexLock lock(&mu_);
    MUSTER_RETURN_IF_ERROR(CheckAliveLocked());
    ExpireLocked(storage_->NowUs());
    record = record_;
    // The floor makes all earlier dedup ids void at once; the sweep deletes their records later.
    record.dedup_floor = counters_.next_seq;
    delta.expired = static_cast<int64_t>(garbage_.size());
  }
  ::rocksdb::WriteBatch batch;
  DeleteMessagesOf(number_, kState, storage_, &batch);
  DeleteMessagesOf(number_, kBody, storage_, &batch);
  DeleteNotesOf(number_, storage_, &batch);
  const std::string key = QueueKey(number_);
  batch.Put(storage_->family(kMeta), key, EncodeQueue(record, key));
  AddToCounters(&batch, delta);
  MUSTER_RETURN_IF_ERROR(storage_->Write(&batch, muster::rocksdb::Durability::kPower));
  base::MutexLock lock(&mu_);
  record_ = std::move(record);
  index_.Clear();
  garbage_.clear();
  return absl::OkStatus();
}

absl::StatusOr<int64_t> DurableQueue::PurgePoison() {
  ExclusiveEntry alone(&gate_);
  {
    base::MutexLock lock(&mu_);
    MUSTER_RETURN_IF_ERROR(CheckAliveLocked());
  }
  ::rocksdb::WriteBatch batch;
  DeletePoisonOf(number_, storage_, &batch);
  MUSTER_RETURN_IF_ERROR(storage_->Write(&batch, muster::rocksdb::Durability::kPower));
  base::MutexLock lock(&mu_);
  const auto purged = static_cast<int64_t>(poison_.size());
  poison_.clear();
  return purged;
}

absl::StatusOr<int64_t> DurableQueue::DropPoison(absl::Span<const std::string> message_ids) {
  if (message_ids.empty()) return 0;
  MUSTER_ASSIGN_OR_RETURN(const std::vector<uint64_t> chosen,
                          ChoosePoison(message_ids, static_cast<int64_t>(message_ids.size())));
  ExclusiveEntry alone(&gate_);
  MUSTER_ASSIGN_OR_RETURN(const std::vector<uint64_t> still, StillPoison(chosen));
  if (still.empty()) return 0;
  ::rocksdb::WriteBatch batch;
  for (const uint64_t seq : still) {
    batch.Delete(storage_->family(kPoison), MessageKey(number_, seq));
    batch.Delete(storage_->family(kBody), PoisonBodyKey(number_, seq));
  }
  MUSTER_RETURN_IF_ERROR(storage_->Write(&batch, muster::rocksdb::Durability::kPower));
  base::MutexLock lock(&mu_);
  for (const uint64_t seq : still) poison_.erase(seq);
  return static_cast<int64_t>(still.size());
}

absl::StatusOr<queue::QueueStats> DurableQueue::Stats() {
  CatchUp();
  base::MutexLock lock(&mu_);
  MUSTER_RETURN_IF_ERROR(CheckAliveLocked());
  const int64_t now_us = storage_->NowUs();
  ExpireLocked(now_us);
  const MessageIndex::Counts counts = index_.CountsAt(now_us);
  queue::QueueStats stats;
  stats.ready = counts.ready;
  stats.in_flight = counts.held;
  stats.delayed = counts.delayed;
  stats.poison = static_cast<int64_t>(poison_.size());
  stats.oldest_age = absl::Microseconds(now_us - index_.OldestInsertion(now_us));
  stats.total_in = counters_.in;
  stats.total_out = counters_.out;
  stats.total_expired = counters_.expired;
  stats.stale_receipts = counters_.stale;
  return stats;
}

// A queue's number is never used twice, and two stores differ in their salt. A message that is
// being put may not be in the index yet; its put has not returned.
absl::StatusOr<queue::QueueExtent> DurableQueue::Extent() {
  CatchUp();
  base::MutexLock lock(&mu_);
  MUSTER_RETURN_IF_ERROR(CheckAliveLocked());
  queue::QueueExtent extent;
  extent.incarnation =
      absl::StrCat(absl::Hex(storage_->salt(), absl::kZeroPad16), ".", absl::Hex(number_));
  extent.next = counters_.next_seq;
  extent.oldest = index_.FirstSequence().value_or(extent.next);
  return extent;
}

absl::StatusOr<absl::Duration> DurableQueue::TimeToVisible() {
  CatchUp();
  base::MutexLock lock(&mu_);
  MUSTER_RETURN_IF_ERROR(CheckAliveLocked());
  const int64_t next_us = index_.NextVisible();
  if (next_us == kNeverUs) return absl::InfiniteDuration();
  return std::max(absl::ZeroDuration(), absl::Microseconds(next_us - storage_->NowUs()));
}

absl::StatusOr<bool> DurableQueue::Holds(absl::string_view message_id) {
  CatchUp();
  base::MutexLock lock(&mu_);
  MUSTER_RETURN_IF_ERROR(CheckAliveLocked());
  const auto seq = SequenceOf(storage_->salt(), number_, message_id);
  return seq.has_value() && index_.Find(*seq) != nullptr;
}

absl::Status DurableQueue::CheckAliveLocked() const {
  if (!deleted_) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat("queue '", id_.ToString(), "' was deleted"));
}

std::string DurableQueue::MessageId(uint64_t seq) const {
  return MessageIdOf(storage_->salt(), number_, seq);
}

std::string DurableQueue::NameOf(uint64_t seq) const {
  return absl::StrCat("queue '", id_.ToString(), "' message ", MessageId(seq));
}

void DurableQueue::CatchUp() {
  const int64_t now_us = storage_->NowUs();
  for (bool behind = true; behind;) {
    base::MutexLock lock(&mu_);
    ExpireLocked(now_us);
    index_.Promote(now_us);
    behind = index_.IsBehind(now_us);
  }
}

void DurableQueue::ExpireLocked(int64_t now_us) {
  const size_t before = garbage_.size();
  index_.Expire(now_us, &garbage_);
  counters_.expired += static_cast<int64_t>(garbage_.size() - before);
}

void DurableQueue::CollectGarbage() {
  std::vector<uint64_t> step;
  {
    base::MutexLock lock(&mu_);
    const size_t size = std::min(garbage_.size(), kGarbageStep);
    if (size == 0) return;
    step.assign(garbage_.end() - static_cast<ptrdiff_t>(size), garbage_.end());
    garbage_.resize(garbage_.size() - size);
  }
  ::rocksdb::WriteBatch batch;
  for (const uint64_t seq : step) DeleteMessage(&batch, seq, /*noted=*/true);
  Counters delta;
  delta.expired = static_cast<int64_t>(step.size());
  AddToCounters(&batch, delta);
  if (storage_->Write(&batch, muster::rocksdb::Durability::kProcess).ok()) return;
  base::MutexLock lock(&mu_);
  garbage_.insert(garbage_.end(), step.begin(), step.end());
}

void DurableQueue::PutState(::rocksdb::WriteBatch* batch, uint64_t seq,
                            const MessageState& state) const {
  const std::string key = MessageKey(number_, seq);
  batch->Put(storage_->family(kState), key, EncodeState(state, key));
}

void DurableQueue::DeleteMessage(::rocksdb::WriteBatch* batch, uint64_t seq, bool noted) const {
  const std::string key = MessageKey(number_, seq);
  batch->Delete(storage_->family(kState), key);
  batch->Delete(storage_->family(kBody), key);
  if (noted) batch->Delete(storage_->family(kMeta), NoteKey(number_, seq));
}

void DurableQueue::AddToCounters(::rocksdb::WriteBatch* batch, const Counters& delta) const {
  batch->Merge(storage_->family(kMeta), CountersKey(number_), EncodeCounters(delta));
}

}  // namespace muster::queue::rocksdb
