// StderrLog: what a program writes to its stderr, as lines of our log.
#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"

namespace muster::handler::command {

// Not thread-safe. Bounded in every direction: a line has at most kMaxLineBytes, and at most
// kMaxLines are logged per kWindow; how many were left out is logged once the window is over, or
// the program.
class StderrLog {
 public:
  static constexpr size_t kMaxLineBytes = 1024;
  static constexpr int kMaxLines = 100;
  static constexpr size_t kLastLines = 3;
  static constexpr size_t kLastBytes = 300;
  static constexpr absl::Duration kWindow = absl::Seconds(10);

  // `clock` is not owned.
  explicit StderrLog(base::Clock* clock) : clock_(clock) {}

  // Lines that end from now on belong to the work item `item`.
  void SetItem(std::string item) { item_ = std::move(item); }

  void Append(absl::string_view bytes);

  // The program has ended: what it wrote last is a line even without a line feed.
  void EndLine();

  // The last kLastLines lines that were not blank since Forget(), as one, cut at its beginning to
  // kLastBytes: mostly what a program died of.
  std::string LastLines() const;
  void Forget() { last_lines_.clear(); }

 private:
  void LogLine();
  bool TakeFromWindow();
  void TellLeftOut();

  base::Clock* const clock_;
  std::string item_;
  std::string line_;  // as far as it has come
  std::deque<std::string> last_lines_;
  absl::Duration window_end_ = -absl::InfiniteDuration();
  int logged_in_window_ = 0;
  int64_t left_out_ = 0;
};

}  // namespace muster::handler::command
