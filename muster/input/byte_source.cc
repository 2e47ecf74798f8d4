// SPDX-License-Identifier: Apache-2.0
#include "muster/input/byte_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "muster/base/status.h"
#include "muster/input/format.h"

namespace muster::input {

namespace {

absl::Status OpenError(const std::string& name, int error) {
  if (error == ENOENT || error == ENOTDIR) {
    return absl::NotFoundError(absl::StrCat(name, " does not exist"));
  }
  if (error == EACCES || error == EPERM) {
    return absl::PermissionDeniedError(absl::StrCat(name, " may not be read"));
  }
  return absl::UnavailableError(
      absl::StrCat(name, " cannot be opened: ", std::generic_category().message(error)));
}

absl::Status RequireRegularFile(const std::string& name, mode_t mode) {
  if (S_ISREG(mode)) return absl::OkStatus();
  if (S_ISDIR(mode)) return absl::InvalidArgumentError(absl::StrCat(name, " is a folder"));
  return absl::InvalidArgumentError(
      absl::StrCat(name,
                   " is not a regular file: a batch is read again when it is continued, which "
                   "a pipe or a device cannot do; store it in a file first"));
}

constexpr char kNotArrived[] = "muster.input/not-arrived-yet";

}  // namespace

absl::Status NotArrivedYet() {
  absl::Status status = absl::UnavailableError("the rest of the input has not arrived yet");
  status.SetPayload(kNotArrived, absl::Cord());
  return status;
}

bool HasNotArrived(const absl::Status& status) {
  return status.GetPayload(kNotArrived).has_value();
}

absl::StatusOr<std::unique_ptr<FileSource>> FileSource::Open(const std::string& path,
                                                             absl::string_view what) {
  if (path == "-") return RequireRegularFile("standard input", S_IFIFO);
  const std::string name = absl::StrCat(what, " '", path, "'");
  // O_NONBLOCK: opening a pipe without a writer would block; a regular file ignores it.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return OpenError(name, errno);
  struct stat info;
  absl::Status status =
      fstat(fd, &info) == 0 ? RequireRegularFile(name, info.st_mode) : OpenError(name, errno);
  if (!status.ok()) {
    close(fd);
    return status;
  }
  // Best effort: doubles the kernel's read-ahead.
  (void)posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
  return std::unique_ptr<FileSource>(
      new FileSource(path, name, fd, static_cast<uint64_t>(info.st_size)));
}

FileSource::FileSource(std::string path, std::string name, int fd, uint64_t size)
    : path_(std::move(path)), name_(std::move(name)), fd_(fd), size_(size) {}

FileSource::~FileSource() { close(fd_); }

absl::StatusOr<size_t> FileSource::Read(uint64_t offset, char* out, size_t bytes) const {
  if (offset >= size_) return size_t{0};
  const size_t wanted = static_cast<size_t>(std::min<uint64_t>(bytes, size_ - offset));
  size_t done = 0;
  while (done < wanted) {
    const ssize_t got = pread(fd_, out + done, wanted - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      return absl::UnavailableError(
          absl::StrCat(name_, " cannot be read: ", std::generic_category().message(errno)));
    }
    if (got == 0) {
      return absl::FailedPreconditionError(absl::StrCat(name_, " had ", size_,
                                                        " bytes and now ends at ", offset + done,
                                                        ": it was cut while it was read"));
    }
    done += static_cast<size_t>(got);
  }
  return done;
}

absl::StatusOr<std::string> ReadTextFile(const std::string& path, absl::string_view what,
                                         size_t max_bytes) {
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<FileSource> file, FileSource::Open(path, what));
  if (file->size() > max_bytes) {
    return absl::InvalidArgumentError(absl::StrCat(what, " '", path, "' has ", file->size(),
                                                   " bytes; at most ", max_bytes, " are allowed"));
  }
  std::string text(static_cast<size_t>(file->size()), '\0');
  MUSTER_ASSIGN_OR_RETURN(const size_t read, file->Read(0, text.data(), text.size()));
  text.resize(read);
  return text;
}

absl::StatusOr<size_t> TextSource::Read(uint64_t offset, char* out, size_t bytes) const {
  if (offset >= text_.size()) return size_t{0};
  const size_t count = std::min(bytes, text_.size() - static_cast<size_t>(offset));
  std::memcpy(out, text_.data() + offset, count);
  return count;
}

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
