// SPDX-License-Identifier: Apache-2.0

// ByteSource: the bytes of an input, read at any offset and as often as needed. A batch is re-read
// when it is continued after a crash, so a pipe cannot be one. A source may still grow: what was
// read up to some offset then stays as it is, and its end is not known yet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster::input {

// The size of a source while it grows.
inline constexpr uint64_t kStillGrowing = std::numeric_limits<uint64_t>::max();

// Unavailable, in a form that HasNotArrived recognizes: the requested bytes are beyond what a
// growing source has so far. A later read may find them.
absl::Status NotArrivedYet();
bool HasNotArrived(const absl::Status& status);

// Thread-safe.
class ByteSource {
 public:
  virtual ~ByteSource() = default;

  // kStillGrowing while the source grows, then fixed. A file's size is fixed when it is opened:
  // bytes that are appended later belong to no batch.
  virtual uint64_t size() const = 0;

  // Reads `bytes` bytes at `offset`, fewer only at the end of the source. FailedPrecondition: the
  // source has become shorter; Unavailable: the medium failed, or NotArrivedYet.
  virtual absl::StatusOr<size_t> Read(uint64_t offset, char* out, size_t bytes) const = 0;
};

// A file, read with pread. Unlike with a mapped file, memory stays bounded, and truncating the file
// during a read is an error instead of a signal.
class FileSource final : public ByteSource {
 public:
  // NotFound, PermissionDenied; InvalidArgument: not a regular file (a folder, a pipe, a device).
  // `what` names it in errors: "input 'a.csv' does not exist".
  static absl::StatusOr<std::unique_ptr<FileSource>> Open(const std::string& path,
                                                          absl::string_view what = "input");

  FileSource(const FileSource&) = delete;
  FileSource& operator=(const FileSource&) = delete;
  ~FileSource() override;

  uint64_t size() const override { return size_; }
  absl::StatusOr<size_t> Read(uint64_t offset, char* out, size_t bytes) const override;
  const std::string& path() const { return path_; }

 private:
  FileSource(std::string path, std::string name, int fd, uint64_t size);

  const std::string path_;
  const std::string name_;  // for errors
  const int fd_;
  const uint64_t size_;
};

// The content of a short file. On top of FileSource's statuses, InvalidArgument: it has more than
// `max_bytes`. `what` names it in errors.
absl::StatusOr<std::string> ReadTextFile(const std::string& path, absl::string_view what,
                                         size_t max_bytes);

// Text in memory; the text is not owned.
class TextSource final : public ByteSource {
 public:
  explicit TextSource(absl::string_view text) : text_(text) {}

  uint64_t size() const override { return text_.size(); }
  absl::StatusOr<size_t> Read(uint64_t offset, char* out, size_t bytes) const override;

 private:
  const absl::string_view text_;
};

// Window: the part of a source that a reader works on, as one contiguous text.

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
