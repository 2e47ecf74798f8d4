// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/os/watched_disk.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"

namespace muster::os {
namespace {

namespace fs = std::filesystem;

std::atomic<WatchedDisk*> watched_disk = nullptr;

std::string NameOf(int fd) {
  std::error_code ignored;
  return fs::read_symlink(absl::StrCat("/proc/self/fd/", fd), ignored).filename();
}

int SyncAs(long call, int fd) {
  WatchedDisk* const disk = watched_disk.load();
  const int error = disk == nullptr ? 0 : disk->Sync(fd);
  if (error == 0) return static_cast<int>(syscall(call, fd));
  errno = error;
  return -1;
}

int RenameAs(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) {
  const long result = syscall(SYS_renameat2, from_folder, from, to_folder, to, flags);
  WatchedDisk* const disk = watched_disk.load();
  if (result == 0 && disk != nullptr) disk->Renamed(from, to);
  return static_cast<int>(result);
}

}  // namespace

WatchedDisk::WatchedDisk() { watched_disk = this; }

WatchedDisk::~WatchedDisk() { watched_disk = nullptr; }

void WatchedDisk::FailSync(const std::string& name, int error) {
  base::MutexLock lock(&mu_);
  failures_[name] = error;
}

std::vector<std::string> WatchedDisk::TakeCalls() {
  base::MutexLock lock(&mu_);
  return std::exchange(calls_, {});
}

int WatchedDisk::Sync(int fd) {
  const std::string name = NameOf(fd);
  base::MutexLock lock(&mu_);
  const auto failure = failures_.find(name);
  if (failure != failures_.end()) return failure->second;
  calls_.push_back(absl::StrCat("sync ", name));
  return 0;
}

void WatchedDisk::Renamed(const char* from, const char* to) {
  const fs::path old_name(from), new_name(to);
  base::MutexLock lock(&mu_);
  calls_.push_back(
      absl::StrCat("rename ", old_name.filename().string(), " to ", new_name.filename().string()));
}

}  // namespace muster::os

// The linker takes these before those of libc.
extern "C" {

int fsync(int fd) { return muster::os::SyncAs(SYS_fsync, fd); }

int fdatasync(int fd) { return muster::os::SyncAs(SYS_fdatasync, fd); }

int rename(const char* from, const char* to) noexcept {
  return muster::os::RenameAs(AT_FDCWD, from, AT_FDCWD, to, 0);
}

int renameat(int from_folder, const char* from, int to_folder, const char* to) noexcept {
  return muster::os::RenameAs(from_folder, from, to_folder, to, 0);
}

int renameat2(int from_folder, const char* from, int to_folder, const char* to,
              unsigned flags) noexcept {
  return muster::os::RenameAs(from_folder, from, to_folder, to, flags);
}

}  // extern "C"
