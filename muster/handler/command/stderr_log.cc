// SPDX-License-Identifier: Apache-2.0
#include "muster/handler/command/stderr_log.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/log.h"

namespace muster::handler::command {
namespace {

constexpr absl::string_view kTracebackHead = "Traceback (most recent call last):";

// Below a source line, newer Pythons mark the place in it, which says nothing by itself.
bool IsMarker(absl::string_view text) {
  return text.find_first_not_of(" \t~^") == absl::string_view::npos;
}

// The last `max` bytes of the text, and a sign that it is not whole.
std::string LastBytes(std::string text, size_t max) {
  if (text.size() <= max) return text;
  // Not within a character: its later bytes begin with 10.
  size_t cut = text.size() - max;
  while (cut < text.size() && (static_cast<unsigned char>(text[cut]) & 0xc0) == 0x80) ++cut;
  return absl::StrCat("…", text.substr(cut));
}

}  // namespace

void StderrLog::Append(absl::string_view bytes) {
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    const absl::string_view part = bytes.substr(0, end);
    line_.append(part.data(), std::min(part.size(), kMaxLineBytes - line_.size()));
    if (end == absl::string_view::npos) return;
    LogLine();
    bytes.remove_prefix(end + 1);
  }
}

void StderrLog::EndLine() {
  if (!line_.empty()) LogLine();
  if (in_traceback_) LogTraceback("a traceback without its end");
  TellLeftOut();
}

void StderrLog::LogLine() {
  const absl::string_view text = absl::StripTrailingAsciiWhitespace(line_);
  if (!text.empty()) {
    if (!TakeTraceback(text) && TakeFromWindow()) {
      base::Log(base::kInfo, "handler stderr", {{"item", item_}, {"line", text}});
    }
    if (!IsMarker(text)) last_lines_.emplace_back(text);
    if (last_lines_.size() > kLastLines) last_lines_.pop_front();
  }
  line_.clear();
}

// As Python writes it: a head, lines that are indented, and the cause.
bool StderrLog::TakeTraceback(absl::string_view text) {
  if (text == kTracebackHead) {
    if (in_traceback_) LogTraceback("a traceback without its end");
    in_traceback_ = true;
    return true;
  }
  if (!in_traceback_) return false;
  if (!absl::ascii_isspace(static_cast<unsigned char>(text.front()))) {
    LogTraceback(text);
    return true;
  }
  if (IsMarker(text)) return true;
  traceback_.emplace_back(absl::StripLeadingAsciiWhitespace(text));
  if (traceback_.size() > kTracebackLines) traceback_.pop_front();
  return true;
}

void StderrLog::LogTraceback(absl::string_view cause) {
  const std::string calls = LastBytes(absl::StrJoin(traceback_, " | "), kTracebackBytes);
  in_traceback_ = false;
  traceback_.clear();
  if (!TakeFromWindow()) return;
  base::Log(base::kInfo, "handler stderr",
            {{"item", item_}, {"line", cause}, {"traceback", calls}});
}

std::string StderrLog::LastLines() const {
  return LastBytes(absl::StrJoin(last_lines_, " | "), kLastBytes);
}

bool StderrLog::TakeFromWindow() {
  if (is_quiet_) {
    ++left_out_;
    return false;
  }
  const absl::Duration now = clock_->Monotonic();
  if (now >= window_end_) {
    TellLeftOut();
    window_end_ = now + kWindow;
    logged_in_window_ = 0;
  }
  if (logged_in_window_ < kMaxLines) {
    ++logged_in_window_;
    return true;
  }
  ++left_out_;
  return false;
}

void StderrLog::TellLeftOut() {
  if (left_out_ == 0 || is_quiet_) return;
  base::Log(base::kWarning, "handler stderr was too much", {{"lines_left_out", left_out_}});
  left_out_ = 0;
}

}  // namespace muster::handler::command
