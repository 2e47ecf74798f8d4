// StopSignals: SIGINT and SIGTERM as a stop token.
#pragma once

#include <stop_token>
#include <string>
#include <thread>

#include "absl/time/time.h"

namespace muster::os {

struct StopOptions {
  // What the program may take from the signal to its exit.
  absl::Duration grace;
  int exit_code = 1;  // of a program that is ended at once
  // Lines on stderr, without a line feed: it took longer than that, or there was a second signal.
  std::string when_late;
  std::string when_hurried;
};

// For programs that have something to bring to an end; others die of the signals. Make it before
// any other thread starts: threads inherit that the two signals are blocked. The first signal
// requests a stop. Another one, half a second later or more, ends the process at once, and so does
// a stop that takes longer than its grace: somebody's code may not listen, and what was
// acknowledged is on disk anyway. Restores nothing: a program has one.
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
