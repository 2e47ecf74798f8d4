// SPDX-License-Identifier: Apache-2.0

// Database: a RocksDB directory opened the way muster wants it: bounded memory, one owner, quiet
// logs, absl::Status. It hides how RocksDB is configured, not RocksDB: callers use db() and
// family() with RocksDB's own types.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/base/check.h"
#include "muster/base/mutex.h"
#include "muster/rocksdb/conversions.h"
#include "muster/telemetry/registry.h"

namespace rocksdb {
class ColumnFamilyHandle;
class DB;
class Env;
class MergeOperator;
class Status;
class WriteBatch;
}  // namespace rocksdb

namespace muster::rocksdb {

class LogGuard;

// What an acknowledged write survives.
enum class Durability {
  kProcess,  // handed to the operating system: survives kill -9, not a power cut
  kPower,    // synced; concurrent writers share one sync
};

enum class FamilyUse {
  kRecords,  // small records, LZ4
  kBodies,   // large values that their writers compress when it pays, most of them short-lived
};

struct Family {
  std::string name;
  FamilyUse use = FamilyUse::kRecords;
  size_t write_buffer_bytes = size_t{8} << 20;
  std::shared_ptr<::rocksdb::MergeOperator> merge = nullptr;  // shared: RocksDB keeps a copy
};

// What an open does about damage in the write-ahead log. A log that was merely cut short does not
// count as damage.
enum class LogReplay {
  kRefuseDamage,  // DataLoss
  kStopAtDamage,  // opens with what precedes it; for repairs
  kSkipDamage,    // opens with all that can be read; to learn what was lost
};

struct DatabaseOptions {
  // In the order that family(i) counts. RocksDB's own "default" family is opened too.
  std::vector<Family> families;
  // Sees the data as of its opening, changes no file, and can be open beside the owner.
  bool read_only = false;
  bool create_if_missing = true;
  LogReplay log_replay = LogReplay::kRefuseDamage;
  // All families together: a full memtable budget flushes the largest one.
  size_t write_buffer_bytes = size_t{80} << 20;
  size_t block_cache_bytes = size_t{32} << 20;
  ::rocksdb::Env* env = nullptr;  // not owned, outlives the database; nullptr = the machine's
  // Called once, on the thread that finds it, when the database refuses all writes from then on,
  // with the reason; not while the database is being destroyed. Must not call the database. Empty:
  // the next writer learns of it.
  std::function<void(const absl::Status&)> on_failure = nullptr;
  // Measures the database, as the store that its directory is named after; null: nothing does. Not
  // owned, outlives the database.
  telemetry::Registry* metrics = nullptr;
};

// Thread-safe.
class Database {
 public:
  // FailedPrecondition: another process (or this one) has `dir` open, or its files are from another
  // version. NotFound: the directory is empty and create_if_missing is off, or read_only. DataLoss:
  // the files are corrupt beyond what RocksDB recovers, or there are some without the one that
  // names the others: no database is created over them.
  static absl::StatusOr<std::unique_ptr<Database>> Open(const std::string& dir,
                                                        const DatabaseOptions& options);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  ::rocksdb::DB* db() const { return db_.get(); }
  ::rocksdb::ColumnFamilyHandle* family(size_t i) const {
    MUSTER_DCHECK(i < families_.size(), "family ", i, " of ", families_.size());
    return families_[i];
  }
  // RocksDB's own family. Every release opens it, so a store may keep there what an older release,
  // which refuses a family that it does not know, passes by.
  ::rocksdb::ColumnFamilyHandle* default_family() const { return default_family_; }
  const std::string& dir() const { return dir_; }

  // Atomic. After an error, a restart may find the batch written or not. If the disk failed
  // (Unavailable, ResourceExhausted) this process may even read the batch, and the database refuses
  // every later write until it is opened again.
  absl::Status Write(::rocksdb::WriteBatch* batch, Durability durability)
      ABSL_LOCKS_EXCLUDED(sync_mu_, failure_mu_);
  // Waits until everything written before the call is on disk; callers share syncs. Errors as
  // Write's.
  absl::Status Sync() ABSL_LOCKS_EXCLUDED(sync_mu_, failure_mu_);
  // Unavailable once a write or a sync has failed, saying why: what is read may be gone after a
  // restart, so the caller must acknowledge nothing because of it. For callers with nothing to
  // write.
  absl::Status CheckWritable() const ABSL_LOCKS_EXCLUDED(failure_mu_);

 private:
  ::rocksdb::Status SyncLog();
  // Acknowledges nothing from now on, because of `failure`.
  void Break(const ::rocksdb::Status& failure) ABSL_LOCKS_EXCLUDED(failure_mu_);
  Database(std::string dir, std::unique_ptr<::rocksdb::Env> env, const LogGuard* log_guard,
           std::function<void(const absl::Status&)> on_failure);
  void Adopt(::rocksdb::DB* db, const std::vector<::rocksdb::ColumnFamilyHandle*>& handles);
  void Measure(telemetry::Registry* metrics);

  const std::string dir_;
  const std::unique_ptr<::rocksdb::Env> env_;
  const LogGuard* const log_guard_;  // env_'s
  std::function<void(const absl::Status&)> on_failure_;
  std::unique_ptr<::rocksdb::DB> db_;
  std::vector<::rocksdb::ColumnFamilyHandle*> families_;     // owned; released before db_
  ::rocksdb::ColumnFamilyHandle* default_family_ = nullptr;  // owned

  telemetry::Histogram sync_seconds_;
  std::unique_ptr<telemetry::Reading> sizes_;  // uses db_

  // A write or a sync has failed: nothing is acknowledged from then on.
  std::atomic<bool> broken_{false};
  mutable base::Mutex failure_mu_;
  absl::Status failure_ ABSL_GUARDED_BY(failure_mu_);  // the first one, once broken

  // Group commit. One caller syncs for all that came before its sync began; the others wait.
  base::Mutex sync_mu_;
  base::CondVar sync_ended_;
  bool syncing_ ABSL_GUARDED_BY(sync_mu_) = false;
  uint64_t syncs_begun_ ABSL_GUARDED_BY(sync_mu_) = 0;
  uint64_t syncs_ended_ ABSL_GUARDED_BY(sync_mu_) = 0;
  absl::Status sync_failure_ ABSL_GUARDED_BY(sync_mu_);  // sticky
};

}  // namespace muster::rocksdb
