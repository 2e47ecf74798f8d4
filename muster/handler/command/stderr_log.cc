#include "muster/handler/command/stderr_log.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/log.h"

namespace muster::handler::command {

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
  TellLeftOut();
}

void StderrLog::LogLine() {
  const absl::string_view text = absl::StripTrailingAsciiWhitespace(line_);
  if (!text.empty()) {
    if (TakeFromWindow()) {
      base::Log(base::kInfo, "handler stderr", {{"item", item_}, {"line", text}});
    }
    last_lines_.emplace_back(text);
    if (last_lines_.size() > kLastLines) last_lines_.pop_front();
  }
  line_.clear();
}

std::string StderrLog::LastLines() const {
  std::string lines = absl::StrJoin(last_lines_, " | ");
  if (lines.size() <= kLastBytes) return lines;
  // Not within a character: its later bytes begin with 10.
  size_t cut = lines.size() - kLastBytes;
  while (cut < lines.size() && (static_cast<unsigned char>(lines[cut]) & 0xc0) == 0x80) ++cut;
  return absl::StrCat("…", lines.substr(cut));
}

bool StderrLog::TakeFromWindow() {
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
  if (left_out_ == 0) return;
  base::Log(base::kWarning, "handler stderr was too much", {{"lines_left_out", left_out_}});
  left_out_ = 0;
}

}  // namespace muster::handler::command
