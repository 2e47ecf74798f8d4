#include "muster/input/window.h"

#include <algorithm>
#include <cstring>

#include "muster/base/status_macros.h"
#include "muster/input/line.h"

namespace muster::input {

Window::Window(const ByteSource* source, uint64_t offset, size_t capacity)
    : source_(source), offset_(offset) {
  // No more than the source has: most tests and many inputs are small.
  const uint64_t left = source->size() > offset ? source->size() - offset : 0;
  buffer_.resize(static_cast<size_t>(std::min<uint64_t>(capacity, left)));
}

absl::Status Window::Require(size_t bytes) {
  if (end_ - begin_ >= bytes || at_end()) return absl::OkStatus();
  std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  MUSTER_ASSIGN_OR_RETURN(const size_t got, source_->Read(offset_ + end_, buffer_.data() + end_,
                                                          buffer_.size() - end_));
  end_ += got;
  return absl::OkStatus();
}

absl::Status SkipEmptyLines(Window* window, int64_t* line) {
  while (true) {
    MUSTER_RETURN_IF_ERROR(window->Require(2));
    const absl::string_view text = window->text();
    const size_t bytes = std::min(text.substr(0, 2).find('\n'), text.size() - 1) + 1;
    if (text.empty() || !IsEmptyLine(text.substr(0, bytes))) return absl::OkStatus();
    window->Advance(bytes);
    ++*line;
  }
}

}  // namespace muster::input
