// SPDX-License-Identifier: Apache-2.0

// Storage: the files of one embedded store, and the state that all its queues share: the epoch, the
// salt of ids, the lease counter and the clock of the engine.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/queue/rocksdb/codec.h"
#include "muster/rocksdb/database.h"
#include "rocksdb/write_batch.h"

namespace muster::queue::rocksdb {

enum FamilyIndex { kMeta, kState, kBody, kPoison, kDedup };

// Returns `base` with the column families of a queue store, in the order of FamilyIndex.
muster::rocksdb::DatabaseOptions QueueDatabase(const muster::rocksdb::DatabaseOptions& base);

// The result of one read: `value` is set when status is OK. NotFound and DataLoss concern this
// record only.
struct ReadResult {
  absl::Status status;
  std::string value;
};

// Thread-safe.
class Storage {
 public:
  // `clock` is not owned and must outlive the storage. A new directory gets its store record. An
  // existing one opened for writing gets the next epoch; the epoch is synced before anything else
  // can happen.
  static absl::StatusOr<std::unique_ptr<Storage>> Open(const std::string& dir,
                                                       const muster::rocksdb::DatabaseOptions& base,
                                                       base::Clock* clock, bool keeps_leases);

  // FailedPrecondition when the store was opened read-only.
  absl::Status CheckWritable() const;

  // Returns Unavailable on every error: whether a restart finds the batch is unknown. The index
  // continues as if the batch had not been written, and all further writes are refused until the
  // store is opened again.
  absl::Status Write(::rocksdb::WriteBatch* batch, muster::rocksdb::Durability durability);
  // Returns Unavailable when Write would refuse every batch. For verbs that have nothing to write:
  // RocksDB still shows what it failed to write, until the store is opened again.
  absl::Status CheckWorks() const;
  // Write, or CheckWorks if there is nothing in the batch.
  absl::Status WriteAny(::rocksdb::WriteBatch* batch, muster::rocksdb::Durability durability);

  // Has RocksDB merge the files of messages and bodies: then what was deleted takes no space.
  // Cancelled: `cancelled` was set.
  absl::Status Compact(std::atomic<bool>* cancelled);

  ReadResult Read(FamilyIndex family, const std::string& key) const;
  std::vector<ReadResult> ReadAll(FamilyIndex family, const std::vector<std::string>& keys) const;

  ::rocksdb::DB* db() const { return database_->db(); }
  ::rocksdb::ColumnFamilyHandle* family(FamilyIndex i) const { return database_->family(i); }

  // µs since 1970. Follows the monotonic clock from the wall time of the open, so that a step of
  // the wall clock neither ends nor prolongs a lease.
  int64_t NowUs() const;
  // Moves the engine's time forward to `us` if it is behind. Called while opening, with the latest
  // put that the files show, so that a wall clock that was set back hides no message that was ready
  // when it was put. The files show no later instant: a message that was delayed or given back
  // becomes visible too late by at most what the clock was set back.
  void AdvanceTo(int64_t us);

  // Whether leases must survive the process, because their holders may.
  bool keeps_leases() const { return keeps_leases_; }
  uint64_t NextLease() { return next_lease_.fetch_add(1, std::memory_order_relaxed); }
  uint64_t salt() const { return record_.salt; }
  // The caller writes it in the same batch as the queue that takes the number.
  StoreRecord& record() { return record_; }

 private:
  Storage(std::unique_ptr<muster::rocksdb::Database> database, base::Clock* clock, bool read_only,
          bool keeps_leases);
  absl::Status LoadRecord();

  const std::unique_ptr<muster::rocksdb::Database> database_;
  base::Clock* const clock_;  // not owned
  const bool read_only_;
  const bool keeps_leases_;
  StoreRecord record_;  // constant after Open, but for next_queue (guarded by the store)
  int64_t anchor_us_;   // wall time where monotonic time is zero; constant after Open
  std::atomic<uint64_t> next_lease_{0};
};

using muster::rocksdb::ToSlice;
using muster::rocksdb::ToView;

// Adds header and body as one value, without concatenating them first.
void PutBody(::rocksdb::WriteBatch* batch, ::rocksdb::ColumnFamilyHandle* family,
             absl::string_view key, absl::string_view body);

inline absl::Time FromUs(int64_t us) {
  return us == kNeverUs ? absl::InfiniteFuture() : absl::FromUnixMicros(us);
}

}  // namespace muster::queue::rocksdb
