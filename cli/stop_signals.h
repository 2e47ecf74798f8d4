// StopSignals: SIGINT and SIGTERM as a stop token.
#pragma once

#include <stop_token>
#include <thread>

namespace muster::cli {

// Make it before any other thread starts: threads inherit that the two signals are blocked. The
// first signal requests a stop; the second ends the process at once, with exit code 130. Restores
// nothing: a program has one.
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
