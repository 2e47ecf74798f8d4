#include "muster/scaling/actuator/process/replica_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/scaling/actuator/process/limits.h"

namespace muster::scaling::actuator::process {
namespace {

// Whole words only: "x-1" is not "x-10".
bool HasWords(absl::string_view line, absl::string_view words) {
  return absl::EndsWith(line, words) || absl::StrContains(line, absl::StrCat(words, " "));
}

}  // namespace

ReplicaLog::ReplicaLog(std::string path, absl::string_view instance)
    : path_(std::move(path)),
      when_ready_(absl::StrCat(" msg=ready instance=", instance)),
      when_not_ready_(absl::StrCat(" msg=\"not ready\" instance=", instance)) {}

void ReplicaLog::Append(absl::string_view bytes) {
  Write(bytes);
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    const absl::string_view part = bytes.substr(0, end);
    line_.append(part.data(), std::min(part.size(), kMaxLogLineBytes - line_.size()));
    if (end == absl::string_view::npos) return;
    EndLine();
    bytes.remove_prefix(end + 1);
  }
}

std::string ReplicaLog::LastLines() const {
  std::deque<std::string> lines = last_lines_;
  if (!absl::StripAsciiWhitespace(line_).empty()) {
    lines.push_back(line_.substr(0, kLastLineBytes));
    if (lines.size() > kLastLines) lines.pop_front();
  }
  return absl::StrJoin(lines, " | ");
}

void ReplicaLog::Write(absl::string_view bytes) {
  if (file_.get() < 0 || file_bytes_ >= kMaxLogBytes) {
    file_.Close();
    rename(path_.c_str(), absl::StrCat(path_, ".1").c_str());
    constexpr int kFlags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC;
    file_ = os::FileDescriptor(open(path_.c_str(), kFlags, 0640));
    file_bytes_ = 0;
  }
  const ssize_t written = write(file_.get(), bytes.data(), bytes.size());
  if (written > 0) file_bytes_ += static_cast<size_t>(written);
}

void ReplicaLog::EndLine() {
  const absl::string_view line = absl::StripAsciiWhitespace(line_);
  if (HasWords(line, when_ready_)) is_ready_ = true;
  if (HasWords(line, when_not_ready_)) is_ready_ = false;
  if (!line.empty()) {
    last_lines_.emplace_back(line.substr(0, kLastLineBytes));
    if (last_lines_.size() > kLastLines) last_lines_.pop_front();
  }
  line_.clear();
}

}  // namespace muster::scaling::actuator::process
