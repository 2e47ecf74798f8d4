// SPDX-License-Identifier: Apache-2.0

// BatchIndex: which batches of a ledger are open or sealed, when something of the others is to be
// removed, and which batches a job has, so that a start, a lookup and a sweep read these alone,
// however many have ended. It is made of the batches' progress, and is written with it.
//
//   family "default"   key: "due", time, number   no value; microseconds since 1970
//                      key: "highest"             value: the highest number of a deleted batch
//                      key: "job/", job, 0, number  no value
//                      key: "jobs_are_whole"      no value; there: each batch has its job's entry
//                      key: "open", number        no value
//                      key: "stamp2"              value: RocksDB's sequence number behind the last
//                                                 write
//
// The time is when to look at the batch: it may be earlier than its next removal, never later.
//
// An older muster opens the family and does not write it. What it writes, or a repair, moves the
// sequence number past the stamp: the next opening then makes the index anew. To change the form,
// change the name of the stamp: the index is made anew, too. The jobs stand in the records of
// batches, which are long: their entries are made anew by the ledger when one is looked for.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/ledger/batch_ledger.h"
#include "muster/rocksdb/database.h"

namespace muster::ledger::rocksdb {

// Thread-compatible: one caller at a time, also for all writes to the database.
class BatchIndex {
 public:
  // `database` is not owned.
  explicit BatchIndex(muster::rocksdb::Database* database) : database_(database) {}

  // Call once, before the others. Reads the index, or makes it of the progress of all batches if it
  // is not sound; `read_only` keeps what it makes in memory. Logs a batch whose progress is damaged
  // as an error and leaves it out.
  absl::Status Load(bool read_only);

  // Numbers of the batches that are open or sealed, in order.
  std::vector<uint64_t> open() const { return {open_.begin(), open_.end()}; }
  // The lowest of them from `from` on; 0: there is none.
  uint64_t NextOpen(uint64_t from) const {
    const auto next = open_.lower_bound(from);
    return next == open_.end() ? 0 : *next;
  }

  // Entries of batches to look at by `now`, up to `max`, the earliest first.
  struct Due {
    absl::Time at;
    uint64_t number = 0;
  };
  absl::StatusOr<std::vector<Due>> ReadDue(absl::Time now, size_t max);
  // Looks at the batch at its next removal instead; nullptr: never.
  absl::Status MoveDue(const Due& from, const ledger::Batch* batch);

  uint64_t highest_deleted() const { return highest_deleted_; }

  // The highest number below `below` of a batch of the job; 0: there is none. Only once
  // jobs_are_whole. The batch may be gone, where an older muster has deleted it.
  absl::StatusOr<uint64_t> NewestOfJob(absl::string_view job, uint64_t below) const;
  bool jobs_are_whole() const { return jobs_are_whole_; }
  // Adds the jobs of batches that are there, or were. `whole`: it has those of all of them now.
  struct BatchOfJob {
    std::string job;
    uint64_t number = 0;
  };
  absl::Status AddJobs(const std::vector<BatchOfJob>& batches, bool whole);

  // Writes `write`, which changes no state of a batch. Not synced; as Database::Write.
  absl::Status Write(::rocksdb::WriteBatch* write);
  // Writes `write`, which takes the batch from `was` (nullptr: it is new) to `batch`.
  absl::Status WriteState(const ledger::Batch* was, const ledger::Batch& batch,
                          ::rocksdb::WriteBatch* write);
  // Writes `write`, which deletes the batch.
  absl::Status WriteDeleted(const ledger::Batch& was, ::rocksdb::WriteBatch* write);

 private:
  absl::Status Read();
  absl::Status Make(bool read_only);
  bool IsSound() const;

  muster::rocksdb::Database* const database_;  // not owned
  std::set<uint64_t> open_;                    // as stored
  uint64_t highest_deleted_ = 0;               // as stored
  bool jobs_are_whole_ = false;                // as stored
  // No entry is due before this: a read need not pass over all that were deleted.
  absl::Time due_from_ = absl::InfinitePast();
};

}  // namespace muster::ledger::rocksdb
