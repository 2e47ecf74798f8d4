// SPDX-License-Identifier: Apache-2.0

// The batch ledger of one machine, in a RocksDB directory separate from the queue's, so that losing
// the queue loses no batch.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "muster/base/mutex.h"
#include "muster/ledger/batch_ledger.h"
#include "muster/ledger/rocksdb/batch_index.h"
#include "muster/ledger/rocksdb/batch_reader.h"
#include "muster/rocksdb/database.h"
#include "muster/telemetry/registry.h"

namespace muster::ledger::rocksdb {

struct Options {
  bool read_only = false;
  ::rocksdb::Env* env = nullptr;  // not owned; nullptr = the machine's
  std::function<void(const absl::Status&)> on_failure = nullptr;  // as DatabaseOptions
  telemetry::Registry* metrics = nullptr;                         // as DatabaseOptions
};

// The families in the order of batch_codec.h's FamilyIndex.
muster::rocksdb::DatabaseOptions LedgerDatabase(const Options& options);

// Thread-safe.
class RocksDbBatchLedger final : public ledger::BatchLedger {
 public:
  // Errors as muster::rocksdb::Database::Open.
  static absl::StatusOr<std::unique_ptr<RocksDbBatchLedger>> Open(const std::string& dir,
                                                                  const Options& options);

  using BatchLedger::Create;
  absl::Status Create(const ledger::Batch& batch,
                      absl::Span<const ledger::ItemBoundary> items) override
      ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status NoteDecided(uint64_t batch) override ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status Withdraw(uint64_t batch) override ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status Append(uint64_t batch, uint64_t first_index,
                      absl::Span<const ledger::ItemBoundary> items) override
      ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status RecordSealedContent(uint64_t batch, const ledger::SealedContent& content) override
      ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status Seal(uint64_t batch, uint64_t source_bytes) override ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status MarkEnqueued(uint64_t batch, uint64_t index,
                            absl::Span<const ledger::PutMark> marks) override
      ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<uint32_t> BeginRefill(uint64_t batch) override ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status MarkComplete(uint64_t batch, absl::Time when) override ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status Reopen(uint64_t batch) override ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status CancelIfOpen(uint64_t batch, absl::Time when, const std::string& reason) override
      ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status ExpireUpload(uint64_t batch, absl::Time when, const std::string& reason) override
      ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status Disown(uint64_t batch, absl::Time when, const std::string& reason) override
      ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status Cancel(uint64_t batch, absl::Time when, const std::string& reason) override
      ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status Sync() override ABSL_LOCKS_EXCLUDED(mu_) { return database_->Sync(); }
  absl::StatusOr<std::vector<uint64_t>> ListDue(absl::Time now, size_t max) override
      ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status DropContent(uint64_t batch) override ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status NoteBlobsDeleted(uint64_t batch, absl::Time ended) override ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status NoteRequestReleased(uint64_t batch) override ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status BeginToDropItems(uint64_t batch) override ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status DropItems(uint64_t batch) override ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status Delete(uint64_t batch) override ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<ledger::Batch> Get(uint64_t batch) override ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<ledger::Batch> FindByRequest(absl::string_view tenant,
                                              absl::string_view request_id) override
      ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<ledger::Batch> FindByRequestId(absl::string_view request_id) override
      ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<ledger::Batch> FindNewestOfJob(absl::string_view job) override
      ABSL_LOCKS_EXCLUDED(listing_mu_, mu_);
  absl::StatusOr<ledger::BatchPage> ListBelow(uint64_t below, size_t max) override {
    return reader_.ListBelow(below, max);
  }
  absl::StatusOr<std::vector<uint64_t>> ListOpen() override ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<uint64_t> NextOpenOfJob(absl::string_view job, uint64_t from) override
      ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<uint64_t> HighestNumber() override ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<std::vector<ledger::ItemBoundary>> Items(uint64_t batch, uint64_t first_index,
                                                          size_t max_items) override {
    return reader_.Items(batch, first_index, max_items);
  }

 private:
  explicit RocksDbBatchLedger(std::unique_ptr<muster::rocksdb::Database> database);

  // Reads the jobs of all batches into the index, unless it has them.
  absl::Status IndexJobs() ABSL_LOCKS_EXCLUDED(listing_mu_, mu_);
  absl::StatusOr<ledger::Batch> GetLocked(uint64_t number) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void RememberLocked(const ledger::Batch& batch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // A batch that is over for good; FailedPrecondition: it is not.
  absl::StatusOr<ledger::Batch> GetEndedLocked(uint64_t number) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // A batch that is over; FailedPrecondition: it is not.
  absl::StatusOr<ledger::Batch> GetOverLocked(uint64_t number) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Deletes all records of `batch`. Not synced.
  absl::Status DeleteLocked(const ledger::Batch& batch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Adds the deletion of all boundaries of the batch's items.
  absl::Status AddItemDeletions(uint64_t number, ::rocksdb::WriteBatch* write) const;
  // Adds the growing part of `batch` to `write`, twice if it is cancelled.
  void AddProgress(const ledger::Batch& batch, ::rocksdb::WriteBatch* write) const;
  // Writes the growing part of `batch`, and remembers it. Not synced.
  absl::Status StoreProgressLocked(const ledger::Batch& batch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Changes the growing part of a batch as `change` says, which returns whether it has; an error of
  // it is the answer, and changes nothing.
  using Changing = absl::FunctionRef<absl::StatusOr<bool>(ledger::Batch*)>;
  absl::Status Change(uint64_t number, Changing change) ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status ChangeSynced(uint64_t number, Changing change) ABSL_LOCKS_EXCLUDED(mu_);
  // The batch that the record at `key` of the family "requests" names.
  absl::StatusOr<ledger::Batch> FindLocked(absl::string_view key, absl::string_view request_id)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Adds the record of the request of `batch`, and one of the batch that it hides.
  absl::Status AddRequestLocked(const ledger::Batch& batch, ::rocksdb::WriteBatch* write)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::unique_ptr<muster::rocksdb::Database> database_;
  const BatchReader reader_;

  base::Mutex listing_mu_;  // held by the one that reads all batches

  // Held across writes: reading, changing and writing a batch's progress is one step. Not held
  // across syncs: writers share those, and readers do not wait for a disk.
  base::Mutex mu_;
  BatchIndex index_ ABSL_GUARDED_BY(mu_);
  absl::flat_hash_map<uint64_t, ledger::Batch> known_ ABSL_GUARDED_BY(mu_);  // as stored
};

}  // namespace muster::ledger::rocksdb
