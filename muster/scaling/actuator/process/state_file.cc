#include "muster/scaling/actuator/process/state_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "muster/base/status.h"
#include "muster/os/file_descriptor.h"
#include "muster/scaling/actuator/process/limits.h"

namespace muster::scaling::actuator::process {
namespace {

using os::FileDescriptor;

absl::Status FileError(absl::string_view doing, absl::string_view path) {
  return absl::ErrnoToStatus(errno, absl::StrCat(doing, " ", path));
}

absl::Status WriteAll(int fd, absl::string_view text, absl::string_view path) {
  while (!text.empty()) {
    const ssize_t written = write(fd, text.data(), text.size());
    if (written < 0 && errno != EINTR) return FileError("writing", path);
    if (written > 0) text.remove_prefix(static_cast<size_t>(written));
  }
  return fsync(fd) == 0 ? absl::OkStatus() : FileError("syncing", path);
}

}  // namespace

absl::Status WriteStateFile(const std::string& path, absl::string_view text) {
  const std::string temporary = absl::StrCat(path, ".new");
  FileDescriptor file(open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640));
  if (file.get() < 0) return FileError("creating", temporary);
  MUSTER_RETURN_IF_ERROR(WriteAll(file.get(), text, temporary));
  if (rename(temporary.c_str(), path.c_str()) != 0) return FileError("renaming", temporary);
  const std::string folder = std::filesystem::path(path).parent_path().string();
  const FileDescriptor parent(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (parent.get() < 0 || fsync(parent.get()) != 0) return FileError("syncing", folder);
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadStateFile(const std::string& path) {
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return FileError("opening", path);
  std::string text;
  std::array<char, 4096> chunk;
  while (text.size() <= kMaxStateFileBytes) {
    const ssize_t got = read(file.get(), chunk.data(), chunk.size());
    if (got == 0) return text;
    if (got < 0 && errno != EINTR) return FileError("reading", path);
    if (got > 0) text.append(chunk.data(), static_cast<size_t>(got));
  }
  return absl::DataLossError(absl::StrCat(path, " is too long"));
}

}  // namespace muster::scaling::actuator::process
