// Window: the part of a source that a reader looks at, as one contiguous text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "muster/input/byte_source.h"

namespace muster::input {

// Not thread-safe.
class Window {
 public:
  // `source` is not owned. `capacity`: the most bytes that Require may ask for.
  Window(const ByteSource* source, uint64_t offset, size_t capacity);

  // Makes text() at least `bytes` long, unless the source ends before. Invalidates earlier texts.
  absl::Status Require(size_t bytes);

  // From offset() on, as far as it was read.
  absl::string_view text() const { return {buffer_.data() + begin_, end_ - begin_}; }
  uint64_t offset() const { return offset_; }
  // text() reaches to the end of the source.
  bool at_end() const { return offset_ + (end_ - begin_) >= source_->size(); }

  // Moves on; `bytes` at most text().size().
  void Advance(size_t bytes) {
    begin_ += bytes;
    offset_ += bytes;
  }

 private:
  const ByteSource* const source_;
  std::vector<char> buffer_;
  size_t begin_ = 0;
  size_t end_ = 0;
  uint64_t offset_;  // of buffer_[begin_] in the source
};

// Moves `window` behind the empty lines (LF or CRLF alone) that it begins with, however many, and
// adds them to `line`.
absl::Status SkipEmptyLines(Window* window, int64_t* line);

}  // namespace muster::input
