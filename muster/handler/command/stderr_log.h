// SPDX-License-Identifier: Apache-2.0

// StderrLog: logs what a program writes to its stderr, line by line.
#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"

namespace muster::handler::command {

// Not thread-safe. Bounded in every direction: a line has at most kMaxLineBytes, and at most
// kMaxLines are logged per kWindow. It logs how many lines were left out when the window or the
// program ends.
//
// A traceback of Python becomes one line of the log: the cause, which Python writes last, and the
// innermost calls. Item after item it would fill the log otherwise.
class StderrLog {
 public:
  static constexpr size_t kMaxLineBytes = 1024;
  static constexpr int kMaxLines = 100;
  static constexpr size_t kTracebackLines = 6;  // three calls, each with its source
  static constexpr size_t kTracebackBytes = 600;
  static constexpr size_t kLastLines = 3;
  static constexpr size_t kLastBytes = 300;
  static constexpr absl::Duration kWindow = absl::Seconds(10);

  // `clock` is not owned.
  explicit StderrLog(base::Clock* clock) : clock_(clock) {}

  // Lines that end from now on belong to the work item `item`.
  void SetItem(std::string item) { item_ = std::move(item); }

  // While it is quiet, lines are left out; how many is told after that.
  void SetQuiet(bool is_quiet) { is_quiet_ = is_quiet; }

  void Append(absl::string_view bytes);

  // The program has ended: what it wrote last is a line even without a line feed.
  void EndLine();

  // The last kLastLines non-blank lines since Forget(), joined, cut at the beginning to kLastBytes:
  // they mostly say why the program died.
  std::string LastLines() const;
  void Forget() { last_lines_.clear(); }

 private:
  void LogLine();
  // Whether the line is one of a traceback, which waits for its cause; and the traceback's end.
  bool TakeTraceback(absl::string_view text);
  void LogTraceback(absl::string_view cause);
  bool TakeFromWindow();
  void TellLeftOut();

  base::Clock* const clock_;
  std::string item_;
  bool is_quiet_ = false;
  std::string line_;  // as far as it has come
  std::deque<std::string> last_lines_;
  bool in_traceback_ = false;
  std::deque<std::string> traceback_;  // its last lines so far
  absl::Duration window_end_ = -absl::InfiniteDuration();
  int logged_in_window_ = 0;
  int64_t left_out_ = 0;
};

}  // namespace muster::handler::command
