// SPDX-License-Identifier: Apache-2.0

// StopSignals: SIGINT and SIGTERM as a stop token, and SIGUSR1 as a call.
#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <thread>

#include "absl/time/time.h"

namespace muster::os {

struct StopOptions {
  // What the program may take from the signal to its exit.
  absl::Duration grace;
  int exit_code = 1;  // of a program that is ended at once
  // Lines for stderr, without a line feed: the stop took longer than `grace`, or a second signal
  // came.
  std::string when_late;
  std::string when_hurried;
  // Called at each SIGUSR1 before the stop, on a thread of its own; may be empty.
  std::function<void()> on_user_signal = nullptr;
};

// For programs that have work to finish; other programs simply die of the signals. Create it before
// any other thread starts: threads inherit that the signals are blocked. The first signal
// requests a stop. Another signal, half a second later or more, ends the process at once, and so
// does a stop that takes longer than its grace: a user's handler may ignore the stop, and what was
// acknowledged is on disk anyway. The destructor restores nothing: a program has one StopSignals.
class StopSignals {
 public:
  explicit StopSignals(StopOptions options);
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  std::stop_token token() const { return stop_.get_token(); }

 private:
  void Wait();

  const StopOptions options_;
  std::stop_source stop_;
  std::thread waiter_;
};

}  // namespace muster::os
