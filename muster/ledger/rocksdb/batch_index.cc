// SPDX-License-Identifier: Apache-2.0
#include "muster/ledger/rocksdb/batch_index.h"

#include <algorithm>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "muster/base/log.h"
#include "muster/base/status.h"
#include "muster/ledger/rocksdb/batch_codec.h"
#include "muster/rocksdb/checked_value.h"
#include "rocksdb/db.h"
#include "rocksdb/iterator.h"
#include "rocksdb/write_batch.h"

namespace muster::ledger::rocksdb {
namespace {

using ledger::Batch;
using muster::rocksdb::Durability;
using muster::rocksdb::ToSlice;

// An index that is made anew is written in pieces of this size, the stamp with the last.
constexpr size_t kWriteBytes = size_t{1} << 20;

constexpr absl::string_view kDue = "due";
constexpr absl::string_view kHighest = "highest";
constexpr absl::string_view kJob = "job/";
constexpr absl::string_view kJobsAreWhole = "jobs_are_whole";
constexpr absl::string_view kOpen = "open";
constexpr absl::string_view kStamp = "stamp2";

std::string OpenKey(uint64_t number) {
  std::string key(kOpen);
  muster::rocksdb::AppendKey(number, &key);
  return key;
}

// Names of jobs have no NUL.
std::string JobKey(absl::string_view job, uint64_t number) {
  std::string key = absl::StrCat(kJob, job, absl::string_view("\0", 1));
  muster::rocksdb::AppendKey(number, &key);
  return key;
}

// Times before 1970 count as 1970.
std::string DueKey(absl::Time at, uint64_t number) {
  std::string key(kDue);
  muster::rocksdb::AppendKey(static_cast<uint64_t>(std::max<int64_t>(absl::ToUnixMicros(at), 0)),
                             &key);
  muster::rocksdb::AppendKey(number, &key);
  return key;
}

std::string NumberValue(uint64_t number) {
  std::string value;
  muster::rocksdb::AppendKey(number, &value);
  return value;
}

}  // namespace

absl::Status BatchIndex::Load(bool read_only) {
  MUSTER_RETURN_IF_ERROR(Read());
  return IsSound() ? absl::OkStatus() : Make(read_only);
}

bool BatchIndex::IsSound() const {
  std::string stamp;
  const ::rocksdb::Status read =
      database_->db()->Get({}, database_->default_family(), ToSlice(kStamp), &stamp);
  return read.ok() && stamp == NumberValue(database_->db()->GetLatestSequenceNumber());
}

absl::Status BatchIndex::Read() {
  const std::unique_ptr<::rocksdb::Iterator> it(
      database_->db()->NewIterator({}, database_->default_family()));
  for (it->Seek(ToSlice(kOpen)); it->Valid(); it->Next()) {
    const std::string key = muster::rocksdb::Copy(it->key());
    if (!absl::StartsWith(key, kOpen)) break;
    open_.insert(muster::rocksdb::KeyNumber(absl::string_view(key).substr(kOpen.size())));
  }
  MUSTER_RETURN_IF_ERROR(muster::rocksdb::ToStatus(it->status(), "ledger: index"));
  std::string highest;
  const ::rocksdb::Status read =
      database_->db()->Get({}, database_->default_family(), ToSlice(kHighest), &highest);
  if (read.ok() && highest.size() == sizeof(uint64_t)) {
    highest_deleted_ = muster::rocksdb::KeyNumber(highest);
  }
  std::string none;
  jobs_are_whole_ =
      database_->db()->Get({}, database_->default_family(), ToSlice(kJobsAreWhole), &none).ok();
  return absl::OkStatus();
}

absl::Status BatchIndex::Make(bool read_only) {
  ::rocksdb::WriteBatch write;
  for (const uint64_t stale : open_) write.Delete(database_->default_family(), OpenKey(stale));
  open_.clear();
  jobs_are_whole_ = false;
  write.Delete(database_->default_family(), ToSlice(kJobsAreWhole));
  ::rocksdb::ReadOptions once;
  once.fill_cache = false;
  const std::unique_ptr<::rocksdb::Iterator> it(
      database_->db()->NewIterator(once, database_->family(kProgress)));
  it->SeekToFirst();
  const bool is_new = !it->Valid() && it->status().ok();
  for (; it->Valid(); it->Next()) {
    const uint64_t number = muster::rocksdb::KeyNumber(muster::rocksdb::Copy(it->key()));
    Batch batch;
    const absl::Status read = DecodeProgress(muster::rocksdb::Copy(it->value()), number, &batch);
    if (!read.ok()) {
      base::Log(base::kError, "the ledger's record of a batch is damaged",
                {{"batch", number}, {"why", read.ToString()}});
      continue;
    }
    if (ledger::IsOver(batch.state)) {
      // The entry is due at the batch's end, so maybe too early: the retention stands in the record
      // of the batch, which is long. The search for removals reads it when the entry is due.
      const absl::Time end = batch.completed.value_or(absl::UnixEpoch());
      if (!read_only) write.Put(database_->default_family(), DueKey(end, number), "");
    } else {
      open_.insert(number);
      write.Put(database_->default_family(), OpenKey(number), "");
    }
    if (!read_only && write.GetDataSize() > kWriteBytes) {
      MUSTER_RETURN_IF_ERROR(database_->Write(&write, Durability::kProcess));
      write.Clear();
    }
  }
  MUSTER_RETURN_IF_ERROR(muster::rocksdb::ToStatus(it->status(), "ledger: progress of batches"));
  if (read_only) return absl::OkStatus();
  if (is_new) write.Put(database_->default_family(), ToSlice(kJobsAreWhole), "");
  MUSTER_RETURN_IF_ERROR(Write(&write));
  jobs_are_whole_ = is_new;
  return absl::OkStatus();
}

absl::Status BatchIndex::Write(::rocksdb::WriteBatch* write) {
  // Each change takes one number, the stamp too.
  const uint64_t behind = database_->db()->GetLatestSequenceNumber() + write->Count() + 1;
  write->Put(database_->default_family(), ToSlice(kStamp), NumberValue(behind));
  return database_->Write(write, Durability::kProcess);
}

absl::Status BatchIndex::WriteState(const Batch* was, const Batch& batch,
                                    ::rocksdb::WriteBatch* write) {
  ::rocksdb::ColumnFamilyHandle* const family = database_->default_family();
  const bool over = ledger::IsOver(batch.state);
  const bool was_open = open_.contains(batch.number);
  if (was == nullptr) write->Put(family, JobKey(batch.job, batch.number), "");
  if (!over && !was_open) write->Put(family, OpenKey(batch.number), "");
  if (over && was_open) write->Delete(family, OpenKey(batch.number));
  if (was != nullptr && ledger::IsOver(was->state)) {
    write->Delete(family, DueKey(ledger::NextRemoval(*was).at, batch.number));
  }
  if (over) {
    const absl::Time at = ledger::NextRemoval(batch).at;
    write->Put(family, DueKey(at, batch.number), "");
    due_from_ = std::min(due_from_, at);
  }
  MUSTER_RETURN_IF_ERROR(Write(write));
  if (over) {
    open_.erase(batch.number);
  } else {
    open_.insert(batch.number);
  }
  return absl::OkStatus();
}

absl::Status BatchIndex::WriteDeleted(const Batch& was, ::rocksdb::WriteBatch* write) {
  ::rocksdb::ColumnFamilyHandle* const family = database_->default_family();
  if (ledger::IsOver(was.state)) {
    write->Delete(family, DueKey(ledger::NextRemoval(was).at, was.number));
  } else {
    write->Delete(family, OpenKey(was.number));
  }
  write->Delete(family, JobKey(was.job, was.number));
  const uint64_t highest = std::max(highest_deleted_, was.number);
  if (highest != highest_deleted_) write->Put(family, ToSlice(kHighest), NumberValue(highest));
  MUSTER_RETURN_IF_ERROR(Write(write));
  highest_deleted_ = highest;
  open_.erase(was.number);
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> BatchIndex::NewestOfJob(absl::string_view job, uint64_t below) const {
  if (below == 0) return 0;
  const std::string last = JobKey(job, below - 1);
  const absl::string_view prefix = absl::string_view(last).substr(0, last.size() - 8);
  const std::unique_ptr<::rocksdb::Iterator> it(
      database_->db()->NewIterator({}, database_->default_family()));
  it->SeekForPrev(ToSlice(last));
  MUSTER_RETURN_IF_ERROR(muster::rocksdb::ToStatus(it->status(), "ledger: index"));
  if (!it->Valid()) return 0;
  const std::string key = muster::rocksdb::Copy(it->key());
  if (key.size() != last.size() || !absl::StartsWith(key, prefix)) return 0;
  return muster::rocksdb::KeyNumber(absl::string_view(key).substr(prefix.size()));
}

absl::Status BatchIndex::AddJobs(const std::vector<BatchOfJob>& batches, bool whole) {
  ::rocksdb::WriteBatch write;
  for (const BatchOfJob& batch : batches) {
    write.Put(database_->default_family(), JobKey(batch.job, batch.number), "");
  }
  if (whole) write.Put(database_->default_family(), ToSlice(kJobsAreWhole), "");
  MUSTER_RETURN_IF_ERROR(Write(&write));
  jobs_are_whole_ = jobs_are_whole_ || whole;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<BatchIndex::Due>> BatchIndex::ReadDue(absl::Time now, size_t max) {
  std::vector<Due> due;
  const std::string from = DueKey(due_from_, 0);
  const std::unique_ptr<::rocksdb::Iterator> it(
      database_->db()->NewIterator({}, database_->default_family()));
  absl::Time next = absl::InfiniteFuture();
  for (it->Seek(ToSlice(from)); it->Valid(); it->Next()) {
    const std::string key = muster::rocksdb::Copy(it->key());
    if (!absl::StartsWith(key, kDue) || key.size() != from.size()) break;
    const absl::string_view rest = absl::string_view(key).substr(kDue.size());
    const Due entry{absl::FromUnixMicros(static_cast<int64_t>(muster::rocksdb::KeyNumber(rest))),
                    muster::rocksdb::KeyNumber(rest.substr(sizeof(uint64_t)))};
    if (due.empty()) next = entry.at;
    if (entry.at > now || due.size() >= max) break;
    due.push_back(entry);
  }
  MUSTER_RETURN_IF_ERROR(muster::rocksdb::ToStatus(it->status(), "ledger: index"));
  due_from_ = next;
  return due;
}

absl::Status BatchIndex::MoveDue(const Due& from, const Batch* batch) {
  ::rocksdb::WriteBatch write;
  write.Delete(database_->default_family(), DueKey(from.at, from.number));
  if (batch != nullptr) {
    const absl::Time at = ledger::NextRemoval(*batch).at;
    write.Put(database_->default_family(), DueKey(at, batch->number), "");
    due_from_ = std::min(due_from_, at);
  }
  return Write(&write);
}

}  // namespace muster::ledger::rocksdb
