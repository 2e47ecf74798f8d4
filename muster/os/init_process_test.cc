// SPDX-License-Identifier: Apache-2.0
#include "muster/os/init_process.h"

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <functional>

#include "gtest/gtest.h"
#include "tests/fakes/base/let_others_run.h"

namespace muster::os {
namespace {

constexpr int kNoNamespace = 77;

// Runs `program` behind RunAsInit in process 1 of a new PID namespace; returns its exit code.
int RunAsProcessOne(const std::function<int()>& program) {
  const pid_t outer = fork();
  if (outer == 0) {
    if (unshare(CLONE_NEWPID) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0) {
      _exit(kNoNamespace);
    }
    const pid_t first = fork();
    if (first == 0) {
      RunAsInit();
      _exit(program());
    }
    int status = 0;
    waitpid(first, &status, 0);
    _exit(WEXITSTATUS(status));
  }
  int status = 0;
  waitpid(outer, &status, 0);
  return WEXITSTATUS(status);
}

// A process that ends when its parent, which made it, is gone.
pid_t LeaveAnOrphan() {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) return -1;
  if (const pid_t parent = fork(); parent == 0) {
    const pid_t orphan = fork();
    if (orphan == 0) _exit(0);
    _exit(write(ends[1], &orphan, sizeof(orphan)) < 0 ? 1 : 0);
  }
  pid_t orphan = -1;
  const bool told = read(ends[0], &orphan, sizeof(orphan)) == sizeof(orphan);
  int ignored = 0;
  wait(&ignored);
  return told ? orphan : -1;
}

TEST(RunAsInitTest, DoesNothingInAnOrdinaryProcess) {
  const pid_t before = getpid();
  RunAsInit();
  EXPECT_EQ(getpid(), before);
}

TEST(RunAsInitTest, ReapsWhatLosesItsParentAndEndsAsTheProgramDoes) {
  const int code = RunAsProcessOne([] {
    if (getpid() == 1) return 1;
    for (int i = 0; i < 20; ++i) {
      const pid_t orphan = LeaveAnOrphan();
      if (orphan < 0) return 2;
      // A zombie still counts as there: a test that hangs here has found one.
      while (kill(orphan, 0) == 0 || errno != ESRCH) base::LetOthersRun();
    }
    return 7;
  });
  if (code == kNoNamespace) GTEST_SKIP() << "no PID namespace can be made here";
  EXPECT_EQ(code, 7);
}

TEST(RunAsInitTest, PassesSignalsOn) {
  const int code = RunAsProcessOne([] {
    sigset_t wanted;
    sigemptyset(&wanted);
    sigaddset(&wanted, SIGTERM);
    sigprocmask(SIG_BLOCK, &wanted, nullptr);
    kill(1, SIGTERM);
    int got = 0;
    sigwait(&wanted, &got);
    raise(SIGKILL);
    return 1;
  });
  if (code == kNoNamespace) GTEST_SKIP() << "no PID namespace can be made here";
  EXPECT_EQ(code, 128 + SIGKILL);
}

}  // namespace
}  // namespace muster::os
