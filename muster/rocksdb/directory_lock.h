// RocksDB's lock of a directory, a file LOCK in it that one process at a time holds.
//
// It is a lock of fcntl: a process loses it when it closes *any* descriptor of the file.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace rocksdb {
class Env;
class FileLock;
class Status;
}  // namespace rocksdb

namespace muster::rocksdb {

// base::Busy naming the process that has `dir` open, if another one has. Not for a process
// that has it open itself: to look is to open and close LOCK, which drops its own lock.
absl::Status CheckNobodyOwns(const std::string& dir);

// FailedPrecondition when `status` says that somebody holds the lock of `dir`, and base::Busy when
// it is another process; OK otherwise.
absl::Status LockHeldError(const ::rocksdb::Status& status, const std::string& dir);

// Keeps others from opening a directory, without opening what is in it. They find the lock by its
// path: a directory that takes the place of this one is not locked. Not thread-safe.
class DirectoryLock {
 public:
  // FailedPrecondition: some process has the directory open, or this one. `env` is not owned.
  static absl::StatusOr<DirectoryLock> Take(const std::string& dir, ::rocksdb::Env* env);
  ~DirectoryLock();
  DirectoryLock(DirectoryLock&& other) noexcept;
  DirectoryLock& operator=(DirectoryLock&&) = delete;

 private:
  DirectoryLock(::rocksdb::Env* env, ::rocksdb::FileLock* lock) : env_(env), lock_(lock) {}

  ::rocksdb::Env* const env_;  // not owned
  ::rocksdb::FileLock* lock_;  // the Env's to delete
};

}  // namespace muster::rocksdb
