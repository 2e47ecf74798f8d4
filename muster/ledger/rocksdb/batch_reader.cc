// SPDX-License-Identifier: Apache-2.0
#include "muster/ledger/rocksdb/batch_reader.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/log.h"
#include "muster/base/status.h"
#include "muster/ledger/rocksdb/batch_codec.h"
#include "muster/rocksdb/checked_value.h"
#include "rocksdb/db.h"
#include "rocksdb/iterator.h"
#include "rocksdb/snapshot.h"

namespace muster::ledger::rocksdb {
namespace {

using muster::rocksdb::ToSlice;

}  // namespace

absl::StatusOr<std::string> BatchReader::Read(size_t family, absl::string_view key,
                                              absl::string_view what) const {
  std::string value;
  MUSTER_RETURN_IF_ERROR(muster::rocksdb::ToStatus(
      database_->db()->Get({}, database_->family(family), ToSlice(key), &value), what));
  return value;
}

absl::StatusOr<Batch> BatchReader::Get(uint64_t number) const {
  const std::string what = absl::StrCat("ledger: batch ", number);
  Batch batch;
  const absl::StatusOr<std::string> record = Read(kBatches, BatchKey(number), what);
  if (absl::IsNotFound(record.status())) {
    return absl::NotFoundError(absl::StrCat("there is no batch ", number));
  }
  MUSTER_RETURN_IF_ERROR(record.status());
  MUSTER_RETURN_IF_ERROR(DecodeRecord(*record, number, &batch));
  MUSTER_ASSIGN_OR_RETURN(const std::string progress, Read(kProgress, BatchKey(number), what));
  MUSTER_RETURN_IF_ERROR(DecodeProgress(progress, number, &batch));
  return batch;
}

absl::StatusOr<uint64_t> BatchReader::HighestNumber() const {
  const std::unique_ptr<::rocksdb::Iterator> it(
      database_->db()->NewIterator({}, database_->family(kBatches)));
  it->SeekToLast();
  MUSTER_RETURN_IF_ERROR(muster::rocksdb::ToStatus(it->status(), "ledger: highest batch"));
  return it->Valid() ? muster::rocksdb::KeyNumber(muster::rocksdb::Copy(it->key())) : 0;
}

absl::StatusOr<Batch> BatchReader::ReadListed(uint64_t number, absl::string_view value,
                                              const ::rocksdb::Snapshot* snapshot) const {
  Batch batch;
  MUSTER_RETURN_IF_ERROR(DecodeRecord(value, number, &batch));
  batch.content.clear();
  batch.job_definition.clear();
  ::rocksdb::ReadOptions at;
  at.snapshot = snapshot;
  std::string progress;
  MUSTER_RETURN_IF_ERROR(muster::rocksdb::ToStatus(
      database_->db()->Get(at, database_->family(kProgress), BatchKey(number), &progress),
      absl::StrCat("ledger: batch ", number)));
  MUSTER_RETURN_IF_ERROR(DecodeProgress(progress, number, &batch));
  return batch;
}

absl::StatusOr<ledger::BatchPage> BatchReader::ListBelow(uint64_t below, size_t max) const {
  ledger::BatchPage page;
  // Of one moment: record and progress of a batch are written together.
  ::rocksdb::ManagedSnapshot snapshot(database_->db());
  const std::string end = BatchKey(below);
  const ::rocksdb::Slice bound = ToSlice(end);
  ::rocksdb::ReadOptions at;
  at.snapshot = snapshot.snapshot();
  at.iterate_upper_bound = &bound;
  const std::unique_ptr<::rocksdb::Iterator> it(
      database_->db()->NewIterator(at, database_->family(kBatches)));
  size_t read = 0;
  for (it->SeekToLast(); it->Valid() && read < std::max<size_t>(max, 1); it->Prev(), ++read) {
    const uint64_t number = muster::rocksdb::KeyNumber(muster::rocksdb::Copy(it->key()));
    page.next_below = number;
    absl::StatusOr<Batch> batch =
        ReadListed(number, muster::rocksdb::Copy(it->value()), snapshot.snapshot());
    if (batch.ok()) {
      page.batches.push_back(*std::move(batch));
      continue;
    }
    // NotFound: its progress is missing.
    if (!absl::IsDataLoss(batch.status()) && !absl::IsNotFound(batch.status())) {
      return batch.status();
    }
    base::Log(base::kError, "the ledger's record of a batch is damaged",
              {{"batch", number}, {"why", batch.status().ToString()}});
  }
  MUSTER_RETURN_IF_ERROR(muster::rocksdb::ToStatus(it->status(), "ledger: list batches"));
  if (!it->Valid()) page.next_below = 0;
  return page;
}

absl::StatusOr<std::vector<ItemBoundary>> BatchReader::Items(uint64_t number, uint64_t first_index,
                                                             size_t max_items) const {
  std::vector<ItemBoundary> items;
  const std::string prefix = BatchKey(number), end = ItemsEnd(number);
  const ::rocksdb::Slice from = ToSlice(prefix), bound = ToSlice(end);
  // Both bounds: else a step out of the batch passes all that is deleted of the ones beside it.
  ::rocksdb::ReadOptions of_batch;
  of_batch.iterate_lower_bound = &from;
  of_batch.iterate_upper_bound = &bound;
  const std::unique_ptr<::rocksdb::Iterator> it(
      database_->db()->NewIterator(of_batch, database_->family(kItems)));
  // The run that holds first_index is the last that begins at or before it.
  for (it->SeekForPrev(ItemsKey(number, first_index)); it->Valid() && items.size() < max_items;
       it->Next()) {
    const std::string key = muster::rocksdb::Copy(it->key());
    const uint64_t run_start =
        muster::rocksdb::KeyNumber(absl::string_view(key).substr(prefix.size()));
    MUSTER_ASSIGN_OR_RETURN(const std::vector<ItemBoundary> run,
                            DecodeItems(muster::rocksdb::Copy(it->value()), number));
    const size_t skip = first_index > run_start ? first_index - run_start : 0;
    for (size_t i = skip; i < run.size() && items.size() < max_items; ++i) items.push_back(run[i]);
  }
  MUSTER_RETURN_IF_ERROR(
      muster::rocksdb::ToStatus(it->status(), absl::StrCat("ledger: items of batch ", number)));
  return items;
}

absl::Status BatchReader::ForEachJob(
    absl::FunctionRef<absl::Status(uint64_t number, std::string job)> visit) const {
  ::rocksdb::ReadOptions once;
  once.fill_cache = false;
  const std::unique_ptr<::rocksdb::Iterator> it(
      database_->db()->NewIterator(once, database_->family(kBatches)));
  for (it->SeekToFirst(); it->Valid(); it->Next()) {
    const uint64_t number = muster::rocksdb::KeyNumber(muster::rocksdb::Copy(it->key()));
    Batch batch;
    // One that is damaged has a copy, from which a repair makes it again, and the index anew.
    if (!DecodeRecord(muster::rocksdb::Copy(it->value()), number, &batch).ok()) continue;
    MUSTER_RETURN_IF_ERROR(visit(number, std::move(batch.job)));
  }
  return muster::rocksdb::ToStatus(it->status(), "ledger: jobs of batches");
}

}  // namespace muster::ledger::rocksdb
