// ByteSource: the bytes of an input, read at any offset and as often as needed. A batch is re-read
// when it is continued after a crash, so a pipe cannot be one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster::input {

// Thread-safe.
class ByteSource {
 public:
  virtual ~ByteSource() = default;

  // Fixed when the source is opened: what is appended later belongs to no batch.
  virtual uint64_t size() const = 0;

  // Reads `bytes` bytes at `offset`, fewer only at the end of the source. FailedPrecondition: the
  // source has become shorter; Unavailable: the medium failed.
  virtual absl::StatusOr<size_t> Read(uint64_t offset, char* out, size_t bytes) const = 0;
};

// A file, read with pread: unlike with a mapped file, memory stays bounded, and a file that
// somebody truncates is an error instead of a signal.
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

// Text in memory; the text is not owned.
class TextSource final : public ByteSource {
 public:
  explicit TextSource(absl::string_view text) : text_(text) {}

  uint64_t size() const override { return text_.size(); }
  absl::StatusOr<size_t> Read(uint64_t offset, char* out, size_t bytes) const override;

 private:
  const absl::string_view text_;
};

}  // namespace muster::input
