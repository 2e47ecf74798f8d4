// SPDX-License-Identifier: Apache-2.0
#include "muster/os/process_limits.h"

#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <new>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "absl/base/config.h"
#include "gtest/gtest.h"
#include "tests/fakes/os/no_more_threads.h"

namespace muster::os {
namespace {

constexpr int kExitCode = 5;

// In children: the limits and the handler hold for a whole process.
using ProcessLimitsDeathTest = ::testing::Test;

// Ends the child with 0 if `raised` follows from a soft limit of 64 and a hard one of 128.
[[noreturn]] void RaiseAndExit(int64_t enough, int64_t raised) {
  const rlimit limit = {.rlim_cur = 64, .rlim_max = 128};
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) std::exit(1);
  const bool right = RaiseDescriptorLimit(enough) == raised && DescriptorLimit() == raised;
  std::exit(right ? 0 : 2);
}

TEST(ProcessLimitsDeathTest, RaisesTheDescriptorLimitAsFarAsItIsAllowedAndUseful) {
  EXPECT_EXIT(RaiseAndExit(1000, 128), ::testing::ExitedWithCode(0), "") << "the hard limit";
  EXPECT_EXIT(RaiseAndExit(100, 100), ::testing::ExitedWithCode(0), "") << "no more than is enough";
  EXPECT_EXIT(RaiseAndExit(10, 64), ::testing::ExitedWithCode(0), "") << "a higher limit stays";
}

// There is room for small objects, but not for the stack of a thread. On a thread of its own,
// because GoogleTest catches what nothing catches in a program.
void StartAThreadWithoutMemory() {
  ExitWhenExhausted("muster", kExitCode);
  std::thread([] {
    rlim_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlim_t bytes = pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + (rlim_t{1} << 20);
    const rlimit limit = {.rlim_cur = bytes, .rlim_max = bytes};
    if (setrlimit(RLIMIT_AS, &limit) != 0) std::exit(1);
    std::thread([] {}).join();
  }).join();
}

// As the start of a library, with no byte left.
void RunOutOfMemoryOnce() {
  ExitWhenExhausted("muster", kExitCode);
  std::thread([] {
    const rlimit limit = {.rlim_cur = 1, .rlim_max = 1};
    if (setrlimit(RLIMIT_AS, &limit) != 0) std::exit(1);
    void** taken = nullptr;  // the last one; each knows the one before
    for (size_t bytes = size_t{1} << 20; bytes >= sizeof(void*);) {
      auto* const more = static_cast<void**>(std::malloc(bytes));
      if (more == nullptr) {
        bytes /= 2;
        continue;
      }
      *more = taken;
      taken = more;
    }
    std::once_flag once;
    std::call_once(once, [] { throw std::bad_alloc(); });
  }).join();
}

void WantThreads() {
  ExitWhenExhausted("muster", kExitCode);
  ExitForWantOfThreads();
}

void WantSeveralThreads() {
  ExitWhenExhausted("muster", kExitCode);
  ExitUnlessThreadsStart(3);
  const NoMoreThreads limit;
  ExitUnlessThreadsStart(3);
}

template <typename Exception>
void ThrowOnAThread(const Exception& exception) {
  ExitWhenExhausted("muster", kExitCode);
  std::thread([&exception] { throw exception; }).join();
}

TEST(ProcessLimitsDeathTest, EndsWithAClearErrorWhenNoThreadCanBeStarted) {
#if defined(ABSL_HAVE_ADDRESS_SANITIZER) || defined(ABSL_HAVE_THREAD_SANITIZER)
  GTEST_SKIP() << "a sanitizer maps memory of its own for each thread";
#endif
  EXPECT_EXIT(StartAThreadWithoutMemory(), ::testing::ExitedWithCode(kExitCode),
              "muster: cannot start a thread: .*ulimit -u and -v");
}

// It died with SIGABRT: "libgcc_s.so.1 must be installed for unwinding to work".
TEST(ProcessLimitsDeathTest, EndsWithAClearErrorWithoutMemoryInTheStartOfALibrary) {
#if defined(ABSL_HAVE_ADDRESS_SANITIZER) || defined(ABSL_HAVE_THREAD_SANITIZER)
  GTEST_SKIP() << "a sanitizer maps memory of its own";
#endif
  EXPECT_EXIT(RunOutOfMemoryOnce(), ::testing::ExitedWithCode(kExitCode),
              "muster: cannot go on: .*ulimit -v");
}

TEST(ProcessLimitsDeathTest, EndsSoWhereALibraryWouldAbort) {
  EXPECT_EXIT(WantThreads(), ::testing::ExitedWithCode(kExitCode), "muster: cannot start a thread");
}

// gRPC hung in its first call.
TEST(ProcessLimitsDeathTest, EndsSoWhereALibraryWouldHang) {
  EXPECT_EXIT(WantSeveralThreads(), ::testing::ExitedWithCode(kExitCode),
              "muster: cannot start a thread");
}

TEST(ProcessLimitsDeathTest, EndsSoOnAnyThread) {
  EXPECT_EXIT(ThrowOnAThread(std::bad_alloc()), ::testing::ExitedWithCode(kExitCode),
              "muster: cannot go on: .*ulimit -v");
}

TEST(ProcessLimitsDeathTest, StillAbortsOnAMistake) {
  EXPECT_EXIT(ThrowOnAThread(std::logic_error("a mistake")), ::testing::KilledBySignal(SIGABRT),
              "");
}

}  // namespace
}  // namespace muster::os
