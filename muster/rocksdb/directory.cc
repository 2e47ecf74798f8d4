// SPDX-License-Identifier: Apache-2.0
#include "muster/rocksdb/directory.h"

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "muster/base/status.h"
#include "muster/os/durable_file.h"
#include "muster/rocksdb/database.h"
#include "rocksdb/env.h"

namespace muster::rocksdb {

namespace fs = std::filesystem;

absl::StatusOr<std::vector<fs::path>> FilesIn(const std::string& dir) {
  std::vector<fs::path> files;
  std::error_code error;
  for (auto it = fs::directory_iterator(dir, error); !error && it != fs::directory_iterator();
       it.increment(error)) {
    files.push_back(it->path());
  }
  if (error) return os::FileError(error.value(), "listing", dir);
  return files;
}

namespace {

// ", process 123" when it is another process that holds the lock of `dir`.
std::string LockHolder(const std::string& dir) {
  const int fd = open((std::filesystem::path(dir) / "LOCK").c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return "";
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  const bool held = fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
  close(fd);
  return held ? absl::StrCat(", process ", lock.l_pid) : "";
}

}  // namespace

absl::Status CheckNobodyOwns(const std::string& dir) {
  const std::string holder = LockHolder(dir);
  if (holder.empty()) return absl::OkStatus();
  return base::Busy(absl::StrCat("data directory ", dir, " is used by another process", holder));
}

absl::Status LockHeldError(const ::rocksdb::Status& status, const std::string& dir) {
  const std::string text = status.ToString();
  if (status.IsIOError() && absl::StrContains(text, "lock hold by current process")) {
    // Closing any descriptor of LOCK would drop this process's own lock: do not look for a holder.
    return absl::FailedPreconditionError(
        absl::StrCat("data directory ", dir, " is already open in this process"));
  }
  // Not any failure that names LOCK: opening it may be forbidden, or lack a descriptor.
  if (status.IsIOError() && absl::StrContains(text, "While lock file") &&
      absl::StrContains(text, "/LOCK: Resource temporarily unavailable")) {
    return base::Busy(
        absl::StrCat("data directory ", dir, " is used by another process", LockHolder(dir)));
  }
  return absl::OkStatus();
}

absl::StatusOr<DirectoryLock> DirectoryLock::Take(const std::string& dir, ::rocksdb::Env* env) {
  ::rocksdb::FileLock* lock = nullptr;
  const ::rocksdb::Status status = env->LockFile(absl::StrCat(dir, "/LOCK"), &lock);
  if (status.ok()) return DirectoryLock(env, lock);
  MUSTER_RETURN_IF_ERROR(LockHeldError(status, dir));
  return ToStatus(status, absl::StrCat("lock data directory ", dir));
}

DirectoryLock::DirectoryLock(DirectoryLock&& other) noexcept
    : env_(other.env_), lock_(std::exchange(other.lock_, nullptr)) {}

DirectoryLock::~DirectoryLock() {
  if (lock_ != nullptr) env_->UnlockFile(lock_).PermitUncheckedError();
}

}  // namespace muster::rocksdb
