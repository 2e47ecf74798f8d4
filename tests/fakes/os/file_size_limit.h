// SPDX-License-Identifier: Apache-2.0

// FileSizeLimit: while it lives, a file of this process that grows beyond its limit fails to be
// written, as on a full disk.
#pragma once

#include <sys/resource.h>

#include <csignal>

namespace muster::os {

class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_before_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_before_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
  void (*const handler_before_)(int);
};

}  // namespace muster::os
