// SPDX-License-Identifier: Apache-2.0
#include "muster/os/process_limits.h"

#include <execinfo.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <future>
#include <limits>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

namespace muster::os {

namespace {

int64_t Limit(rlim_t limit) {
  constexpr auto kMost = static_cast<rlim_t>(std::numeric_limits<int64_t>::max());
  return static_cast<int64_t>(std::min(limit, kMost));  // RLIM_INFINITY is above kMost
}

// Both are set once, before any other thread starts.
std::string* program_name = nullptr;
int exhausted_exit_code = EXIT_FAILURE;

// Allocates nothing, because there may be no memory.
[[noreturn]] void Exit(const char* what, const char* why, const char* hint) {
  char line[512];
  const int bytes =
      std::snprintf(line, sizeof(line), "%s: %s: %s; %s\n", program_name->c_str(), what, why, hint);
  if (bytes > 0) {
    const auto length = std::min(static_cast<size_t>(bytes), sizeof(line) - 1);
    if (write(STDERR_FILENO, line, length) < 0) _exit(exhausted_exit_code);
  }
  _exit(exhausted_exit_code);  // no destructors: they may wait for the thread that there is not
}

// `error` is what a thread's start failed with.
[[noreturn]] void ExitWithoutThread(int error) {
  Exit("cannot start a thread",
       std::strerror(error),  // NOLINT(concurrency-mt-unsafe): it ends here
       kRaiseThreadLimits);
}

// Runs where the exception was thrown: no destructor of a caller has run, and none has waited.
[[noreturn]] void OnTerminate() {
  if (const std::exception_ptr thrown = std::current_exception(); thrown != nullptr) {
    try {
      std::rethrow_exception(thrown);
    } catch (const std::system_error& error) {
      if (error.code() == std::errc::resource_unavailable_try_again) {
        ExitWithoutThread(error.code().value());
      }
    } catch (const std::bad_alloc&) {
      Exit("cannot go on", std::strerror(ENOMEM),  // NOLINT(concurrency-mt-unsafe): it ends here
           "raise its limit of memory (ulimit -v, MemoryMax)");
    } catch (...) {  // it aborts below
    }
  }
  std::abort();
}

}  // namespace

int64_t DescriptorLimit() {
  rlimit limit = {};
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? Limit(limit.rlim_cur) : 0;
}

int64_t RaiseDescriptorLimit(int64_t enough) {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  const int64_t wanted = std::min(Limit(limit.rlim_max), enough);
  if (wanted > Limit(limit.rlim_cur)) {
    limit.rlim_cur = static_cast<rlim_t>(wanted);
    (void)setrlimit(RLIMIT_NOFILE, &limit);  // if the system refuses, the old limit holds
  }
  return DescriptorLimit();
}

void ExitWhenExhausted(const std::string& program, int exit_code) {
  delete program_name;
  program_name =
      new std::string(program);  // never freed: a thread may die of exhaustion at any time
  exhausted_exit_code = exit_code;
  // Where an exception passes a frame of the C library, as that of std::call_once, glibc loads what
  // unwinds it, and aborts if there is no memory left for that. This loads it now.
  void* frame = nullptr;
  backtrace(&frame, 1);
  std::set_terminate(OnTerminate);
}

void ExitUnlessThreadsStart(int count) {
  if (program_name == nullptr) return;
  std::promise<void> all_run;
  const std::shared_future<void> end = all_run.get_future().share();
  std::vector<std::thread> threads;
  threads.reserve(static_cast<size_t>(count));
  try {
    for (int i = 0; i < count; ++i) threads.emplace_back([end] { end.wait(); });
  } catch (const std::system_error& error) {
    ExitWithoutThread(error.code().value());
  }
  all_run.set_value();
  for (std::thread& thread : threads) thread.join();
}

void ExitForWantOfThreads() {
  if (program_name != nullptr) ExitWithoutThread(EAGAIN);
}

}  // namespace muster::os
