// SPDX-License-Identifier: Apache-2.0

// The files of a database, for a repair while no RocksDB has it open.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace rocksdb {
class Env;
class FileLock;
class Status;
}  // namespace rocksdb

namespace muster::rocksdb {

// All files in `dir`, in no order.
absl::StatusOr<std::vector<std::filesystem::path>> FilesIn(const std::string& dir);

// RocksDB's lock of a directory, a file LOCK in it that one process at a time holds.
//
// It is a lock of fcntl: a process loses it when it closes *any* descriptor of the file.

// base::Busy naming the process that has `dir` open, if another process has. Do not call it in a
// process that has `dir` open itself: opening and closing LOCK drops the process's own lock.
absl::Status CheckNobodyOwns(const std::string& dir);

// FailedPrecondition when `status` says that the lock of `dir` is held, and base::Busy when another
// process holds it; OK otherwise.
absl::Status LockHeldError(const ::rocksdb::Status& status, const std::string& dir);

// Keeps others from opening a directory, without opening the database in it. Others find the lock
// by its path: a directory that replaces this one is not locked. Not thread-safe.
class DirectoryLock {
 public:
  // FailedPrecondition: this or another process has the directory open. `env` is not owned.
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
