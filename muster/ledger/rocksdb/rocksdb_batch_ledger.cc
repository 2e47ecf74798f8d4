// SPDX-License-Identifier: Apache-2.0
#include "muster/ledger/rocksdb/rocksdb_batch_ledger.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
#include "muster/base/status.h"
#include "muster/ledger/rocksdb/batch_codec.h"
#include "rocksdb/write_batch.h"

namespace muster::ledger::rocksdb {
namespace {

using ledger::Batch;
using ledger::BatchState;
using ledger::ItemBoundary;

// Ledger records are small and read rarely.
constexpr size_t kWriteBufferBytes = size_t{8} << 20;
constexpr size_t kBlockCacheBytes = size_t{4} << 20;

void AddTo(Batch* batch, absl::Span<const ItemBoundary> items) {
  if (items.empty()) return;
  for (size_t i = 1; i < items.size(); ++i) {
    MUSTER_DCHECK(items[i - 1].offset + items[i - 1].length <= items[i].offset, "batch ",
                  batch->number, ": item at ", items[i - 1].offset, " of ", items[i - 1].length,
                  " bytes, and the next at ", items[i].offset);
  }
  for (const ItemBoundary& item : items) {
    batch->transactions += item.transactions;
    batch->multiline.Add(item.multiline);
  }
  batch->items += items.size();
  batch->source_bytes = items.back().offset + items.back().length;
}

// The steps between two states, as batch_ledger.h draws them.
bool IsStep(BatchState from, BatchState to) {
  switch (from) {
    case BatchState::kOpen:
      return to == BatchState::kSealed || to == BatchState::kCancelled;
    case BatchState::kSealed:
      return to == BatchState::kComplete || to == BatchState::kCancelled;
    case BatchState::kComplete:
      return to == BatchState::kSealed;
    case BatchState::kCancelled:
      return false;
  }
  return false;
}

// Stops the process unless `now` can follow on `was`, the stored progress of the same batch. Only
// an append changes the counts of items, and it writes by itself. What the stored progress says is
// not checked: it comes from the disk.
void CheckFollows(const Batch& was, const Batch& now) {
  MUSTER_CHECK(now.items == was.items && now.transactions == was.transactions, "batch ", now.number,
               ": items ", was.items, " then ", now.items, ", transactions ", was.transactions,
               " then ", now.transactions);
  MUSTER_CHECK(now.enqueued_items >= was.enqueued_items, "batch ", now.number, ": enqueued ",
               was.enqueued_items, " then ", now.enqueued_items);
  MUSTER_CHECK(now.refills - was.refills <= 1, "batch ", now.number, ": refills ", was.refills,
               " then ", now.refills);
  MUSTER_CHECK(!was.sealed_content.has_value() || now.sealed_content == was.sealed_content,
               "batch ", now.number, ": the sealed content changes");
  if (now.state == was.state) return;
  MUSTER_CHECK(IsStep(was.state, now.state), "batch ", now.number, ": ", BatchStateName(was.state),
               " then ", BatchStateName(now.state));
  const bool over = now.state == BatchState::kComplete || now.state == BatchState::kCancelled;
  MUSTER_CHECK(now.completed.has_value() || !over, "batch ", now.number, " is ",
               BatchStateName(now.state));
}

// False: it is cancelled already.
absl::StatusOr<bool> SetCancelled(Batch* batch, absl::Time when, const std::string& reason) {
  if (batch->state == BatchState::kCancelled) return false;
  if (batch->state == BatchState::kComplete) {
    return absl::FailedPreconditionError(
        absl::StrCat("batch ", batch->number, " is complete and cannot be cancelled"));
  }
  batch->state = BatchState::kCancelled;
  batch->undecided = false;
  batch->completed = when;
  batch->cancel_reason = reason;
  return true;
}

}  // namespace

muster::rocksdb::DatabaseOptions LedgerDatabase(const Options& options) {
  muster::rocksdb::DatabaseOptions database;
  database.families = {{"batches"}, {"progress"}, {"items"}, {"requests"}};
  database.read_only = options.read_only;
  database.write_buffer_bytes = kWriteBufferBytes;
  database.block_cache_bytes = kBlockCacheBytes;
  database.env = options.env;
  database.on_failure = options.on_failure;
  database.metrics = options.metrics;
  return database;
}

absl::StatusOr<std::unique_ptr<RocksDbBatchLedger>> RocksDbBatchLedger::Open(
    const std::string& dir, const Options& options) {
  MUSTER_ASSIGN_OR_RETURN(auto opened,
                          muster::rocksdb::Database::Open(dir, LedgerDatabase(options)));
  std::unique_ptr<RocksDbBatchLedger> ledger(new RocksDbBatchLedger(std::move(opened)));
  {
    base::MutexLock lock(&ledger->mu_);
    MUSTER_RETURN_IF_ERROR(ledger->index_.Load(options.read_only));
  }
  return ledger;
}

RocksDbBatchLedger::RocksDbBatchLedger(std::unique_ptr<muster::rocksdb::Database> database)
    : database_(std::move(database)), reader_(database_.get()), index_(database_.get()) {}

absl::StatusOr<Batch> RocksDbBatchLedger::GetLocked(uint64_t number) {
  if (const auto it = known_.find(number); it != known_.end()) return it->second;
  MUSTER_ASSIGN_OR_RETURN(Batch batch, reader_.Get(number));
  RememberLocked(batch);
  return batch;
}

// Remembers only batches that still change: otherwise a long-lived process would keep all of them.
void RocksDbBatchLedger::RememberLocked(const Batch& batch) {
  if (batch.state == BatchState::kOpen || batch.state == BatchState::kSealed) {
    known_[batch.number] = batch;
  } else {
    known_.erase(batch.number);
  }
}

void RocksDbBatchLedger::AddProgress(const Batch& batch, ::rocksdb::WriteBatch* write) const {
  write->Put(database_->family(kProgress), BatchKey(batch.number), EncodeProgress(batch));
  if (batch.state != BatchState::kCancelled) return;
  write->Put(database_->family(kRequests), CopyKey(batch.number), EncodeCopy(batch));
}

absl::Status RocksDbBatchLedger::StoreProgressLocked(const Batch& batch) {
  std::optional<Batch> read;
  const Batch* was = nullptr;
  if (const auto known = known_.find(batch.number); known != known_.end()) {
    was = &known->second;
    CheckFollows(*was, batch);
  } else {
    MUSTER_ASSIGN_OR_RETURN(read, GetLocked(batch.number));
    was = &*read;
  }
  ::rocksdb::WriteBatch write;
  AddProgress(batch, &write);
  MUSTER_RETURN_IF_ERROR(index_.WriteState(was, batch, &write));
  RememberLocked(batch);
  return absl::OkStatus();
}

absl::Status RocksDbBatchLedger::Change(uint64_t number, Changing change) {
  base::MutexLock lock(&mu_);
  MUSTER_ASSIGN_OR_RETURN(Batch batch, GetLocked(number));
  MUSTER_ASSIGN_OR_RETURN(const bool is_changed, change(&batch));
  return is_changed ? StoreProgressLocked(batch) : absl::OkStatus();
}

// Syncs even if it changes nothing: the change may be another caller's that is not synced yet.
absl::Status RocksDbBatchLedger::ChangeSynced(uint64_t number, Changing change) {
  MUSTER_RETURN_IF_ERROR(Change(number, change));
  return database_->Sync();
}

absl::Status RocksDbBatchLedger::Create(const Batch& begun, absl::Span<const ItemBoundary> items) {
  MUSTER_CHECK(begun.number != 0, "request '", begun.request_id, "'");
  const bool is_whole = begun.state == BatchState::kSealed && !items.empty() && !begun.undecided;
  MUSTER_CHECK((begun.state == BatchState::kOpen || is_whole) && begun.items == 0 &&
                   begun.enqueued_items == 0,
               "batch ", begun.number, " is ", BatchStateName(begun.state), ", items ", begun.items,
               ", enqueued ", begun.enqueued_items);
  if (IsReserved(begun.request_id)) {
    return absl::InvalidArgumentError("the ledger needs this request id for itself");
  }
  Batch batch = begun;
  AddTo(&batch, items);
  {
    base::MutexLock lock(&mu_);
    const absl::StatusOr<Batch> other = GetLocked(batch.number);
    if (other.ok()) {
      return absl::AlreadyExistsError(absl::StrCat("batch ", batch.number, " is in the ledger"));
    }
    if (!absl::IsNotFound(other.status())) return other.status();
    ::rocksdb::WriteBatch write;
    const std::string key = BatchKey(batch.number);
    write.Put(database_->family(kBatches), key, EncodeRecord(batch));
    write.Put(database_->family(kProgress), key, EncodeProgress(batch));
    if (!items.empty()) {
      write.Put(database_->family(kItems), ItemsKey(batch.number, 0), EncodeItems(items));
    }
    MUSTER_RETURN_IF_ERROR(AddRequestLocked(batch, &write));
    write.Put(database_->family(kRequests), CopyKey(batch.number), EncodeCopy(batch));
    MUSTER_RETURN_IF_ERROR(index_.WriteState(nullptr, batch, &write));
    RememberLocked(batch);
  }
  return database_->Sync();
}

absl::Status RocksDbBatchLedger::NoteDecided(uint64_t number) {
  return Change(number, [](Batch* batch) { return std::exchange(batch->undecided, false); });
}

absl::Status RocksDbBatchLedger::Append(uint64_t number, uint64_t first_index,
                                        absl::Span<const ItemBoundary> items) {
  if (items.empty()) return absl::OkStatus();
  {
    base::MutexLock lock(&mu_);
    MUSTER_ASSIGN_OR_RETURN(Batch batch, GetLocked(number));
    if (batch.state != BatchState::kOpen || batch.items != first_index) {
      return absl::FailedPreconditionError(
          absl::StrCat("batch ", number, " is ", BatchStateName(batch.state), " with ", batch.items,
                       " items: items from ", first_index, " on do not follow"));
    }
    AddTo(&batch, items);
    ::rocksdb::WriteBatch write;
    write.Put(database_->family(kItems), ItemsKey(number, first_index), EncodeItems(items));
    write.Put(database_->family(kProgress), BatchKey(number), EncodeProgress(batch));
    MUSTER_RETURN_IF_ERROR(index_.Write(&write));
    RememberLocked(batch);
  }
  return database_->Sync();
}

absl::Status RocksDbBatchLedger::RecordSealedContent(uint64_t number,
                                                     const ledger::SealedContent& content) {
  return ChangeSynced(number, [&](Batch* batch) -> absl::StatusOr<bool> {
    if (batch->sealed_content.value_or(content) != content) {
      return absl::AlreadyExistsError(
          absl::StrCat("batch ", number, " was sealed with other content"));
    }
    if (batch->sealed_content.has_value()) return false;
    batch->sealed_content = content;
    return true;
  });
}

absl::Status RocksDbBatchLedger::Seal(uint64_t number, uint64_t source_bytes) {
  return ChangeSynced(number, [&](Batch* batch) {
    if (batch->state != BatchState::kOpen) return false;
    batch->state = BatchState::kSealed;
    batch->undecided = false;
    batch->source_bytes = source_bytes;
    return true;
  });
}

absl::Status RocksDbBatchLedger::MarkEnqueued(uint64_t number, uint64_t index,
                                              absl::Span<const ledger::PutMark> marks) {
  return Change(number, [&](Batch* batch) {
    MUSTER_CHECK(index <= batch->items, "batch ", number, ": enqueued ", index, ", items ",
                 batch->items);
    batch->enqueued_items = std::max(batch->enqueued_items, index);
    if (index > 0) batch->undecided = false;
    if (!marks.empty()) batch->put_marks.assign(marks.begin(), marks.end());
    return true;
  });
}

absl::StatusOr<uint32_t> RocksDbBatchLedger::BeginRefill(uint64_t number) {
  uint32_t refills = 0;
  MUSTER_RETURN_IF_ERROR(ChangeSynced(number, [&](Batch* batch) {
    refills = ++batch->refills;
    return true;
  }));
  return refills;
}

absl::Status RocksDbBatchLedger::MarkComplete(uint64_t number, absl::Time when) {
  return ChangeSynced(number, [&](Batch* batch) -> absl::StatusOr<bool> {
    if (batch->state != BatchState::kSealed && batch->state != BatchState::kComplete) {
      return absl::FailedPreconditionError(absl::StrCat(
          "batch ", number, " is ", BatchStateName(batch->state), " and cannot be complete"));
    }
    batch->state = BatchState::kComplete;
    batch->completed = when;
    return true;
  });
}

absl::Status RocksDbBatchLedger::Reopen(uint64_t number) {
  return ChangeSynced(number, [&](Batch* batch) -> absl::StatusOr<bool> {
    if (batch->state == BatchState::kCancelled) {
      return absl::FailedPreconditionError(absl::StrCat("batch ", number, " is cancelled"));
    }
    if (batch->items_deleted) {
      return absl::FailedPreconditionError(
          absl::StrCat("the items of batch ", number,
                       " are deleted, as its retention says: nothing of it can be "
                       "worked on again"));
    }
    const bool was_complete = batch->state == BatchState::kComplete;
    if (was_complete) {
      batch->state = BatchState::kSealed;
      batch->completed.reset();
      batch->blobs_deleted = false;
    }
    const bool had_marks = !batch->put_marks.empty();
    batch->put_marks.clear();
    return was_complete || had_marks;
  });
}

absl::Status RocksDbBatchLedger::CancelIfOpen(uint64_t number, absl::Time when,
                                              const std::string& reason) {
  return ChangeSynced(number, [&](Batch* batch) -> absl::StatusOr<bool> {
    if (batch->state == BatchState::kSealed) {
      return absl::FailedPreconditionError(absl::StrCat("batch ", number, " is sealed"));
    }
    return SetCancelled(batch, when, reason);
  });
}

absl::Status RocksDbBatchLedger::ExpireUpload(uint64_t number, absl::Time when,
                                              const std::string& reason) {
  return ChangeSynced(number, [&](Batch* batch) -> absl::StatusOr<bool> {
    if (batch->state == BatchState::kSealed || batch->sealed_content.has_value()) {
      return absl::FailedPreconditionError(
          absl::StrCat("the content of batch ", number, " was sealed"));
    }
    batch->upload_expired = true;
    return SetCancelled(batch, when, reason);
  });
}

absl::Status RocksDbBatchLedger::Cancel(uint64_t number, absl::Time when,
                                        const std::string& reason) {
  return ChangeSynced(number, [&](Batch* batch) { return SetCancelled(batch, when, reason); });
}

absl::Status RocksDbBatchLedger::Disown(uint64_t number, absl::Time when,
                                        const std::string& reason) {
  return ChangeSynced(number, [&](Batch* batch) -> absl::StatusOr<bool> {
    batch->disowned = true;
    MUSTER_RETURN_IF_ERROR(SetCancelled(batch, when, reason).status());
    return true;
  });
}

}  // namespace muster::ledger::rocksdb
