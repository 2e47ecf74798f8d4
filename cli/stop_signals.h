// StopSignals: SIGINT and SIGTERM as a stop token.
#pragma once

#include <stop_token>
#include <thread>

#include "absl/time/time.h"

namespace muster::cli {

// SIGTERM to exit takes at most 5 s, so that nobody has to send SIGKILL.
inline constexpr absl::Duration kStopGrace = absl::Milliseconds(4500);

// For commands that have something to bring to an end; others die of the signals. Make it before
// any other thread starts: threads inherit that the two signals are blocked. The first signal
// requests a stop. Another one, half a second later or more, ends the process at once with exit
// code 130, and so does a stop that takes longer than kStopGrace: a handler may not listen, and
// what was acknowledged is on disk anyway. Restores nothing: a program has one.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  std::stop_token token() const { return stop_.get_token(); }

 private:
  void Wait();

  std::stop_source stop_;
  std::thread waiter_;
};

}  // namespace muster::cli
