// SPDX-License-Identifier: Apache-2.0
#include "muster/os/process_start.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "gtest/gtest.h"

namespace muster::os {
namespace {

// Whether it has an input that was started with descriptor 0 as `prepare` leaves it.
bool HasInputAfter(const std::function<void()>& prepare) {
  const pid_t child = fork();
  if (child == 0) {
    prepare();
    PrepareProcess();
    _exit(HasInput() ? 1 : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  return WEXITSTATUS(status) == 1;
}

TEST(ProcessStartTest, AClosedInputIsNotTakenForAnEmptyOne) {
  EXPECT_TRUE(HasInputAfter([] { dup2(open("/dev/null", O_RDONLY), STDIN_FILENO); }));
  EXPECT_TRUE(HasInputAfter([] { dup2(open("/dev/null", O_RDWR), STDIN_FILENO); }));
  EXPECT_FALSE(HasInputAfter([] { close(STDIN_FILENO); }));
}

TEST(ProcessStartTest, WhatALibraryHasOpenedBeforeMainIsNoInput) {
  EXPECT_FALSE(HasInputAfter([] {
    close(STDIN_FILENO);
    open("/dev/null", O_RDONLY | O_CLOEXEC);
  }));
}

}  // namespace
}  // namespace muster::os
