// SPDX-License-Identifier: Apache-2.0

// Opens the files of a store, and reads and writes its records.

#include "muster/queue/rocksdb/storage.h"

#include <algorithm>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/failpoint.h"
#include "muster/base/status.h"
#include "rocksdb/db.h"
#include "rocksdb/merge_operator.h"

namespace muster::queue::rocksdb {

namespace {

Counters DecodeOrZero(const ::rocksdb::Slice& record) {
  return DecodeCounters(absl::string_view(record.data(), record.size())).value_or(Counters());
}

// Merges Counters records (codec.h): adds the totals and keeps the larger next_seq. So a batch adds
// to the counters of a queue without reading them, and concurrent batches need no order among
// themselves. A damaged operand counts as zero: counters are statistics, and must not cost a
// message.
class CountersMerge final : public ::rocksdb::AssociativeMergeOperator {
 public:
  bool Merge(const ::rocksdb::Slice&, const ::rocksdb::Slice* existing,
             const ::rocksdb::Slice& value, std::string* merged,
             ::rocksdb::Logger*) const override {
    Counters sum = existing == nullptr ? Counters() : DecodeOrZero(*existing);
    sum.Add(DecodeOrZero(value));
    *merged = EncodeCounters(sum);
    return true;
  }

  // RocksDB stores this name in its options file: never change it.
  const char* Name() const override { return "muster.queue.counters"; }
};

uint64_t RandomSalt() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

}  // namespace

muster::rocksdb::DatabaseOptions QueueDatabase(const muster::rocksdb::DatabaseOptions& base) {
  constexpr size_t kMiB = size_t{1} << 20;
  muster::rocksdb::DatabaseOptions options = base;
  options.families = {
      {"meta", muster::rocksdb::FamilyUse::kRecords, 2 * kMiB, std::make_shared<CountersMerge>()},
      {"state", muster::rocksdb::FamilyUse::kRecords, 16 * kMiB},
      // Large, so that a body that is soon deleted dies in the memtable and never costs a flush.
      {"body", muster::rocksdb::FamilyUse::kBodies, 32 * kMiB},
      {"poison", muster::rocksdb::FamilyUse::kRecords, 2 * kMiB},
      {"dedup", muster::rocksdb::FamilyUse::kRecords, 4 * kMiB},
  };
  return options;
}

absl::StatusOr<std::unique_ptr<Storage>> Storage::Open(const std::string& dir,
                                                       const muster::rocksdb::DatabaseOptions& base,
                                                       base::Clock* clock, bool keeps_leases) {
  MUSTER_ASSIGN_OR_RETURN(auto database, muster::rocksdb::Database::Open(dir, QueueDatabase(base)));
  std::unique_ptr<Storage> storage(
      new Storage(std::move(database), clock, base.read_only, keeps_leases));
  MUSTER_RETURN_IF_ERROR(storage->LoadRecord());
  return storage;
}

Storage::Storage(std::unique_ptr<muster::rocksdb::Database> database, base::Clock* clock,
                 bool read_only, bool keeps_leases)
    : database_(std::move(database)),
      clock_(clock),
      read_only_(read_only),
      keeps_leases_(keeps_leases),
      anchor_us_(absl::ToUnixMicros(clock->Now()) - absl::ToInt64Microseconds(clock->Monotonic())) {
}

absl::Status Storage::LoadRecord() {
  const ReadResult read = Read(kMeta, StoreKey());
  if (absl::IsNotFound(read.status)) {
    if (read_only_) return absl::NotFoundError(absl::StrCat("no queues in ", database_->dir()));
    record_.salt = RandomSalt();
  } else {
    MUSTER_RETURN_IF_ERROR(read.status);
    if (FormatVersionOf(read.value) > kFormatVersion) {
      return absl::FailedPreconditionError(
          absl::StrCat(database_->dir(), " was written by a newer muster"));
    }
    const std::optional<StoreRecord> record = DecodeStore(read.value);
    if (!record.has_value()) {
      return absl::DataLossError(
          absl::StrCat("the store record of ", database_->dir(), " is damaged"));
    }
    record_ = *record;
  }
  if (read_only_) return absl::OkStatus();
  ++record_.epoch;
  next_lease_ = record_.epoch << kLeaseCounterBits;
  ::rocksdb::WriteBatch batch;
  batch.Put(family(kMeta), StoreKey(), EncodeStore(record_));
  return Write(&batch, muster::rocksdb::Durability::kPower);
}

absl::Status Storage::CheckWritable() const {
  if (!read_only_) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(database_->dir(), " was opened read-only"));
}

absl::Status Storage::Write(::rocksdb::WriteBatch* batch, muster::rocksdb::Durability durability) {
  MUSTER_FAILPOINT("queue.before_write");
  const absl::Status status = database_->Write(batch, durability);
  if (status.ok()) return status;
  return absl::UnavailableError(
      absl::StrCat(status.message(), " (whether it was written is unknown)"));
}

absl::Status Storage::CheckWorks() const { return database_->CheckWritable(); }

absl::Status Storage::WriteAny(::rocksdb::WriteBatch* batch,
                               muster::rocksdb::Durability durability) {
  return batch->Count() == 0 ? CheckWorks() : Write(batch, durability);
}

ReadResult Storage::Read(FamilyIndex family_index, const std::string& key) const {
  ReadResult result;
  const ::rocksdb::Status status =
      db()->Get(::rocksdb::ReadOptions(), family(family_index), key, &result.value);
  result.status = muster::rocksdb::ToStatus(status, database_->dir());
  return result;
}

std::vector<ReadResult> Storage::ReadAll(FamilyIndex family_index,
                                         const std::vector<std::string>& keys) const {
  const std::vector<::rocksdb::Slice> slices(keys.begin(), keys.end());
  std::vector<::rocksdb::PinnableSlice> values(keys.size());
  std::vector<::rocksdb::Status> statuses(keys.size());
  db()->MultiGet(::rocksdb::ReadOptions(), family(family_index), keys.size(), slices.data(),
                 values.data(), statuses.data());
  std::vector<ReadResult> results(keys.size());
  for (size_t i = 0; i < keys.size(); ++i) {
    results[i].status = muster::rocksdb::ToStatus(statuses[i], database_->dir());
    if (statuses[i].ok()) results[i].value.assign(values[i].data(), values[i].size());
  }
  return results;
}

absl::Status Storage::Compact(std::atomic<bool>* cancelled) {
  ::rocksdb::CompactRangeOptions options;
  options.exclusive_manual_compaction = false;  // RocksDB's own go on beside it
  options.canceled = cancelled;
  // A log goes once no family has anything in it that is not in a file.
  std::vector<::rocksdb::ColumnFamilyHandle*> all;
  for (const FamilyIndex index : {kMeta, kState, kBody, kPoison, kDedup}) {
    all.push_back(family(index));
  }
  MUSTER_RETURN_IF_ERROR(
      muster::rocksdb::ToStatus(db()->Flush(::rocksdb::FlushOptions(), all), "flush the queues"));
  for (const FamilyIndex index : {kState, kBody, kPoison}) {
    if (*cancelled) return absl::CancelledError("the store closes");
    const ::rocksdb::Status compacted =
        db()->CompactRange(options, family(index), nullptr, nullptr);
    if (*cancelled) return absl::CancelledError("the store closes");
    MUSTER_RETURN_IF_ERROR(muster::rocksdb::ToStatus(compacted, "merge the files of the queues"));
  }
  return absl::OkStatus();
}

int64_t Storage::NowUs() const {
  return anchor_us_ + absl::ToInt64Microseconds(clock_->Monotonic());
}

void Storage::AdvanceTo(int64_t us) { anchor_us_ += std::max<int64_t>(0, us - NowUs()); }

void PutBody(::rocksdb::WriteBatch* batch, ::rocksdb::ColumnFamilyHandle* family,
             absl::string_view key, absl::string_view body) {
  const std::string header = EncodeBodyHeader(body, key);
  const ::rocksdb::Slice key_slice = ToSlice(key);
  const ::rocksdb::Slice parts[2] = {ToSlice(header), ToSlice(body)};
  batch->Put(family, ::rocksdb::SliceParts(&key_slice, 1), ::rocksdb::SliceParts(parts, 2));
}

}  // namespace muster::queue::rocksdb
