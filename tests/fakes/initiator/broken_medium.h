// SPDX-License-Identifier: Apache-2.0

// BrokenMedium: while it lives, this process cannot sync the file that it has open at `path`,
// because the file's descriptor is replaced by that of a pipe.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <string>
#include <system_error>

#include "gtest/gtest.h"

namespace muster::initiator {

class BrokenMedium {
 public:
  explicit BrokenMedium(const std::string& path) : fd_(DescriptorOf(path)), file_(dup(fd_)) {
    EXPECT_EQ(pipe(pipe_), 0);
    EXPECT_EQ(dup2(pipe_[1], fd_), fd_);
  }
  ~BrokenMedium() {
    EXPECT_EQ(dup2(file_, fd_), fd_);
    for (const int fd : {file_, pipe_[0], pipe_[1]}) close(fd);
  }
  BrokenMedium(const BrokenMedium&) = delete;
  BrokenMedium& operator=(const BrokenMedium&) = delete;

 private:
  static int DescriptorOf(const std::string& path) {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      if (std::filesystem::read_symlink(entry.path(), error) == path) {
        return std::stoi(entry.path().filename());
      }
    }
    ADD_FAILURE() << path << " is not open";
    return -1;
  }

  const int fd_;
  const int file_;
  int pipe_[2] = {-1, -1};
};

}  // namespace muster::initiator
