// SPDX-License-Identifier: Apache-2.0

// What is taken away of a batch that is over, step by step.
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/status.h"
#include "muster/ledger/rocksdb/batch_codec.h"
#include "muster/ledger/rocksdb/rocksdb_batch_ledger.h"
#include "muster/rocksdb/checked_value.h"
#include "rocksdb/db.h"
#include "rocksdb/iterator.h"
#include "rocksdb/write_batch.h"

namespace muster::ledger::rocksdb {

absl::StatusOr<std::vector<uint64_t>> RocksDbBatchLedger::ListDue(absl::Time now, size_t max) {
  base::MutexLock lock(&mu_);
  std::vector<uint64_t> due;
  MUSTER_ASSIGN_OR_RETURN(const std::vector<BatchIndex::Due> entries, index_.ReadDue(now, max));
  for (const BatchIndex::Due& entry : entries) {
    const absl::StatusOr<Batch> batch = GetLocked(entry.number);
    // Deleted by another muster, or damaged: a repair makes the index anew.
    const bool is_lost = absl::IsNotFound(batch.status()) || absl::IsDataLoss(batch.status());
    if (is_lost || (batch.ok() && !ledger::IsOver(batch->state))) {
      MUSTER_RETURN_IF_ERROR(index_.MoveDue(entry, nullptr));
      continue;
    }
    if (!batch.ok()) {
      // A disk that failed may answer the next time, and nothing but this entry leads there.
      due.push_back(entry.number);
      continue;
    }
    const absl::Time at = ledger::NextRemoval(*batch).at;
    // An index that was made anew does not know the retention. An entry has microseconds.
    const bool is_its = absl::FromUnixMicros(absl::ToUnixMicros(at)) == entry.at;
    if (!is_its) MUSTER_RETURN_IF_ERROR(index_.MoveDue(entry, &*batch));
    if (at <= now) due.push_back(entry.number);
  }
  return due;
}

absl::StatusOr<Batch> RocksDbBatchLedger::GetOverLocked(uint64_t number) {
  MUSTER_ASSIGN_OR_RETURN(Batch batch, GetLocked(number));
  if (ledger::IsOver(batch.state)) return batch;
  return absl::FailedPreconditionError(
      absl::StrCat("batch ", number, " is ", BatchStateName(batch.state), ": it has not ended"));
}

absl::Status RocksDbBatchLedger::DropContent(uint64_t number) {
  base::MutexLock lock(&mu_);
  MUSTER_ASSIGN_OR_RETURN(const Batch was, GetOverLocked(number));
  if (was.content_deleted) return absl::OkStatus();
  Batch batch = was;
  batch.content.clear();
  batch.content_deleted = true;
  ::rocksdb::WriteBatch write;
  if (!was.content.empty()) {
    write.Put(database_->family(kBatches), BatchKey(number), EncodeRecord(batch));
  }
  AddProgress(batch, &write);
  return index_.WriteState(&was, batch, &write);
}

absl::Status RocksDbBatchLedger::NoteBlobsDeleted(uint64_t number, absl::Time ended) {
  return Change(number, [&](Batch* batch) {
    if (!ledger::IsOver(batch->state) || batch->completed != ended) return false;
    return !std::exchange(batch->blobs_deleted, true);
  });
}

absl::Status RocksDbBatchLedger::NoteRequestReleased(uint64_t number) {
  base::MutexLock lock(&mu_);
  MUSTER_ASSIGN_OR_RETURN(const Batch was, GetLocked(number));
  if (!was.request_claimed) return absl::OkStatus();
  Batch batch = was;
  batch.request_claimed = false;
  ::rocksdb::WriteBatch write;
  write.Put(database_->family(kBatches), BatchKey(number), EncodeRecord(batch));
  // The claim decides what is removed next.
  MUSTER_RETURN_IF_ERROR(index_.WriteState(&was, batch, &write));
  RememberLocked(batch);
  return absl::OkStatus();
}

absl::Status RocksDbBatchLedger::BeginToDropItems(uint64_t number) {
  {
    base::MutexLock lock(&mu_);
    MUSTER_ASSIGN_OR_RETURN(const Batch was, GetOverLocked(number));
    if (!was.items_deleted) {
      Batch batch = was;
      batch.content.clear();
      batch.content_deleted = batch.items_deleted = true;
      ::rocksdb::WriteBatch write;
      write.Put(database_->family(kBatches), BatchKey(number), EncodeRecord(batch));
      AddProgress(batch, &write);
      MUSTER_RETURN_IF_ERROR(index_.WriteState(&was, batch, &write));
    }
  }
  return database_->Sync();
}

absl::StatusOr<Batch> RocksDbBatchLedger::GetEndedLocked(uint64_t number) {
  MUSTER_ASSIGN_OR_RETURN(Batch batch, GetOverLocked(number));
  if (batch.items_deleted) return batch;
  return absl::FailedPreconditionError(absl::StrCat("batch ", number, " is not over for good"));
}

absl::Status RocksDbBatchLedger::DropItems(uint64_t number) {
  base::MutexLock lock(&mu_);
  MUSTER_RETURN_IF_ERROR(GetEndedLocked(number).status());
  ::rocksdb::WriteBatch write;
  MUSTER_RETURN_IF_ERROR(AddItemDeletions(number, &write));
  return index_.Write(&write);
}

absl::Status RocksDbBatchLedger::AddItemDeletions(uint64_t number,
                                                  ::rocksdb::WriteBatch* write) const {
  const std::string end = ItemsEnd(number);
  const ::rocksdb::Slice bound = muster::rocksdb::ToSlice(end);
  // Else the last step passes all that is deleted of younger batches.
  ::rocksdb::ReadOptions of_batch;
  of_batch.iterate_upper_bound = &bound;
  const std::unique_ptr<::rocksdb::Iterator> it(
      database_->db()->NewIterator(of_batch, database_->family(kItems)));
  for (it->Seek(BatchKey(number)); it->Valid(); it->Next()) {
    write->Delete(database_->family(kItems), muster::rocksdb::Copy(it->key()));
  }
  return muster::rocksdb::ToStatus(it->status(), absl::StrCat("ledger: items of batch ", number));
}

absl::Status RocksDbBatchLedger::Delete(uint64_t number) {
  base::MutexLock lock(&mu_);
  MUSTER_ASSIGN_OR_RETURN(const Batch batch, GetEndedLocked(number));
  return DeleteLocked(batch);
}

absl::Status RocksDbBatchLedger::Withdraw(uint64_t number) {
  base::MutexLock lock(&mu_);
  MUSTER_ASSIGN_OR_RETURN(const Batch batch, GetLocked(number));
  if (!batch.undecided) {
    return absl::FailedPreconditionError(
        absl::StrCat("batch ", number, " is decided, and ", BatchStateName(batch.state)));
  }
  MUSTER_RETURN_IF_ERROR(DeleteLocked(batch));
  known_.erase(number);
  return absl::OkStatus();
}

absl::Status RocksDbBatchLedger::DeleteLocked(const Batch& batch) {
  const uint64_t number = batch.number;
  const std::string key = BatchKey(number);
  ::rocksdb::WriteBatch write;
  MUSTER_RETURN_IF_ERROR(AddItemDeletions(number, &write));
  write.Delete(database_->family(kBatches), key);
  write.Delete(database_->family(kProgress), key);
  write.Delete(database_->family(kRequests), CopyKey(number));
  write.Delete(database_->family(kRequests), TenantKey(batch.tenant, batch.request_id, number));
  for (const std::string& request : {batch.request_id, TenantKey(batch.tenant, batch.request_id)}) {
    const absl::StatusOr<std::string> newest =
        reader_.Read(kRequests, request, absl::StrCat("ledger: request '", batch.request_id, "'"));
    // The request id may have a newer batch.
    if (newest.ok() && *newest == muster::rocksdb::CheckedValue(key)) {
      write.Delete(database_->family(kRequests), request);
    }
  }
  return index_.WriteDeleted(batch, &write);
}

}  // namespace muster::ledger::rocksdb
