// SPDX-License-Identifier: Apache-2.0

// What finds a batch: by its number, its request, its job, and among the open ones.
#include <algorithm>
#include <limits>
#include <memory>
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
namespace {

// Writers wait for one such write at most.
constexpr size_t kIndexedAtATime = 1000;

}  // namespace

absl::StatusOr<Batch> RocksDbBatchLedger::Get(uint64_t number) {
  base::MutexLock lock(&mu_);
  return GetLocked(number);
}

absl::StatusOr<Batch> RocksDbBatchLedger::FindByRequestId(absl::string_view request_id) {
  base::MutexLock lock(&mu_);
  return FindLocked(request_id, request_id);
}

absl::StatusOr<Batch> RocksDbBatchLedger::FindByRequest(absl::string_view tenant,
                                                        absl::string_view request_id) {
  base::MutexLock lock(&mu_);
  absl::StatusOr<Batch> newest = FindLocked(request_id, request_id);
  if (newest.ok() && newest->tenant == tenant) return newest;
  if (!newest.ok() && !absl::IsNotFound(newest.status())) return newest;
  const std::string first = TenantKey(tenant, request_id, 0);
  const ::rocksdb::Slice bound = muster::rocksdb::ToSlice(first);
  ::rocksdb::ReadOptions of_request;
  of_request.iterate_lower_bound = &bound;
  const std::unique_ptr<::rocksdb::Iterator> it(
      database_->db()->NewIterator(of_request, database_->family(kRequests)));
  it->SeekForPrev(TenantKey(tenant, request_id, UINT64_MAX));
  if (it->Valid()) return FindLocked(muster::rocksdb::Copy(it->key()), request_id);
  MUSTER_RETURN_IF_ERROR(
      muster::rocksdb::ToStatus(it->status(), absl::StrCat("ledger: request '", request_id, "'")));
  return FindLocked(TenantKey(tenant, request_id), request_id);
}

absl::StatusOr<Batch> RocksDbBatchLedger::FindLocked(absl::string_view key,
                                                     absl::string_view request_id) {
  const std::string what = absl::StrCat("ledger: request '", request_id, "'");
  if (IsReserved(request_id)) return absl::NotFoundError(what);
  MUSTER_ASSIGN_OR_RETURN(const std::string value, reader_.Read(kRequests, key, what));
  MUSTER_ASSIGN_OR_RETURN(const absl::string_view number,
                          muster::rocksdb::CheckedPayload(value, what));
  return GetLocked(muster::rocksdb::KeyNumber(number));
}

// Each batch that a newer one hides has a record of its own, which leads to it once the newer ones
// are deleted: most ledgers have none.
absl::Status RocksDbBatchLedger::AddRequestLocked(const Batch& batch,
                                                  ::rocksdb::WriteBatch* write) {
  ::rocksdb::ColumnFamilyHandle* const family = database_->family(kRequests);
  const absl::StatusOr<Batch> newest = FindLocked(batch.request_id, batch.request_id);
  if (!newest.ok() && !absl::IsNotFound(newest.status())) return newest.status();
  if (newest.ok()) {
    write->Put(family, TenantKey(newest->tenant, batch.request_id, newest->number),
               muster::rocksdb::CheckedValue(BatchKey(newest->number)));
  }
  write->Put(family, batch.request_id, muster::rocksdb::CheckedValue(BatchKey(batch.number)));
  return absl::OkStatus();
}

absl::StatusOr<Batch> RocksDbBatchLedger::FindNewestOfJob(absl::string_view job) {
  MUSTER_RETURN_IF_ERROR(IndexJobs());
  base::MutexLock lock(&mu_);
  for (uint64_t below = std::numeric_limits<uint64_t>::max();;) {
    MUSTER_ASSIGN_OR_RETURN(below, index_.NewestOfJob(job, below));
    if (below == 0) return absl::NotFoundError(absl::StrCat("job '", job, "' has no batch"));
    absl::StatusOr<Batch> batch = GetLocked(below);
    if (!absl::IsNotFound(batch.status()) && !absl::IsDataLoss(batch.status())) return batch;
  }
}

// A batch that is deleted meanwhile leaves an entry, which finds nothing.
absl::Status RocksDbBatchLedger::IndexJobs() {
  base::MutexLock listing(&listing_mu_);
  {
    base::MutexLock lock(&mu_);
    if (index_.jobs_are_whole()) return absl::OkStatus();
  }
  std::vector<BatchIndex::BatchOfJob> batches;
  const auto add = [&](bool whole) -> absl::Status {
    base::MutexLock lock(&mu_);
    MUSTER_RETURN_IF_ERROR(index_.AddJobs(batches, whole));
    batches.clear();
    return absl::OkStatus();
  };
  MUSTER_RETURN_IF_ERROR(reader_.ForEachJob([&](uint64_t number, std::string job) {
    batches.push_back({std::move(job), number});
    return batches.size() < kIndexedAtATime ? absl::OkStatus() : add(/*whole=*/false);
  }));
  return add(/*whole=*/true);
}

absl::StatusOr<std::vector<uint64_t>> RocksDbBatchLedger::ListOpen() {
  base::MutexLock lock(&mu_);
  return index_.open();
}

absl::StatusOr<uint64_t> RocksDbBatchLedger::NextOpenOfJob(absl::string_view job, uint64_t from) {
  base::MutexLock lock(&mu_);
  uint64_t number = index_.NextOpen(from);
  for (; number != 0; number = index_.NextOpen(number + 1)) {
    // Not a copy of each batch that is passed.
    if (const auto known = known_.find(number); known != known_.end()) {
      if (known->second.job == job) break;
      continue;
    }
    const absl::StatusOr<Batch> batch = GetLocked(number);
    if (absl::IsNotFound(batch.status())) continue;
    MUSTER_RETURN_IF_ERROR(batch.status());
    if (batch->job == job) break;
  }
  return number;
}

absl::StatusOr<uint64_t> RocksDbBatchLedger::HighestNumber() {
  base::MutexLock lock(&mu_);
  MUSTER_ASSIGN_OR_RETURN(const uint64_t last, reader_.HighestNumber());
  return std::max(last, index_.highest_deleted());
}

}  // namespace muster::ledger::rocksdb
