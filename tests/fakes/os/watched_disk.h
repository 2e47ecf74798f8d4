// SPDX-License-Identifier: Apache-2.0

// WatchedDisk: shows in which order this process syncs and renames files, and fails on demand.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "muster/base/mutex.h"

namespace muster::os {

// A program that uses it has its own fsync, fdatasync, rename, renameat and renameat2, which tell
// the WatchedDisk that lives and do what libc's do. Thread-safe; one lives at a time.
class WatchedDisk {
 public:
  WatchedDisk();
  ~WatchedDisk();
  WatchedDisk(const WatchedDisk&) = delete;
  WatchedDisk& operator=(const WatchedDisk&) = delete;

  // From now on each sync of a file or folder with this name fails with `error`, an errno.
  void FailSync(const std::string& name, int error);

  // What it has done since the last call: "sync NAME", "rename NAME to NAME". Each NAME is the last
  // part of a path.
  std::vector<std::string> TakeCalls();

  // For the calls themselves. 0: go on; otherwise the errno to fail with.
  int Sync(int fd);
  void Renamed(const char* from, const char* to);

 private:
  base::Mutex mu_;
  std::vector<std::string> calls_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, int> failures_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::os
