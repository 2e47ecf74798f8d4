// SPDX-License-Identifier: Apache-2.0

// LogGuard: hides from RocksDB that its write-ahead log cannot be written or synced.
//
// Debian builds RocksDB with its assertions, and one of them ends the process when a log file that
// met an error is written or synced again. With many writers that cannot be prevented: a writer
// that began before the error has passed every check that Database could make. So the guard
// reports success to RocksDB, remembers the failure and passes nothing on from then on, and
// Database asks the guard before it acknowledges anything.
//
//   Append, Sync of a log   ──error──▶  failure()  ──▶  Database returns it to all callers
//                                       later appends and syncs of logs: dropped, "OK"
//                                       new files of any kind: refused
//
// New files are refused so that no flush makes part of what was never logged durable.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "muster/base/mutex.h"
#include "rocksdb/file_system.h"

namespace muster::rocksdb {

// Thread-safe.
class LogGuard final : public ::rocksdb::FileSystemWrapper {
 public:
  explicit LogGuard(const std::shared_ptr<::rocksdb::FileSystem>& target)
      : ::rocksdb::FileSystemWrapper(target) {}

  const char* Name() const override { return "muster.LogGuard"; }

  // What failed first; OK as long as nothing has.
  ::rocksdb::IOStatus failure() const;

  ::rocksdb::IOStatus NewWritableFile(const std::string& name,
                                      const ::rocksdb::FileOptions& options,
                                      std::unique_ptr<::rocksdb::FSWritableFile>* file,
                                      ::rocksdb::IODebugContext* debug) override;

 private:
  class LogFile;

  // Always returns OK; if `status` is an error, failure() keeps it.
  ::rocksdb::IOStatus Keep(const ::rocksdb::IOStatus& status);

  std::atomic<bool> failed_{false};
  mutable base::Mutex mu_;
  ::rocksdb::IOStatus failure_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::rocksdb
