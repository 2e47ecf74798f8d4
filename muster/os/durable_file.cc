// SPDX-License-Identifier: Apache-2.0
#include "muster/os/durable_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "muster/base/status.h"
#include "muster/os/file_descriptor.h"

namespace muster::os {
namespace {

namespace fs = std::filesystem;

// "." of a path that names none.
std::string ParentOf(const std::string& path) {
  fs::path clean(path);
  // A slash at the end makes the last part of the path an empty name.
  if (!clean.has_filename() && clean.has_relative_path()) clean = clean.parent_path();
  const fs::path parent = clean.parent_path();
  return parent.empty() ? "." : parent.string();
}

bool IsFolder(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

// The new name first: a power cut in between leaves two names, not none.
absl::Status SyncFoldersOf(const std::string& to, const std::string& from) {
  MUSTER_RETURN_IF_ERROR(SyncFolderOf(to));
  return ParentOf(to) == ParentOf(from) ? absl::OkStatus() : SyncFolderOf(from);
}

absl::Status WriteTemporary(const std::string& path, absl::string_view bytes) {
  constexpr int kFlags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC;
  const FileDescriptor file(open(path.c_str(), kFlags, kFileMode));
  if (file.get() < 0) return FileError(errno, "creating", path);
  MUSTER_RETURN_IF_ERROR(WriteFully(file.get(), bytes, path));
  return SyncDescriptor(file.get(), path);
}

}  // namespace

absl::Status FileError(int error, absl::string_view doing, absl::string_view path) {
  const absl::Status status = absl::ErrnoToStatus(error, absl::StrCat(doing, " ", path));
  switch (error) {
    case ENOSPC:
    case EDQUOT:
      return absl::ResourceExhaustedError(status.message());
    case EIO:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      return absl::UnavailableError(status.message());
    default:
      return status;
  }
}

absl::Status WriteFully(int fd, absl::string_view bytes, absl::string_view what) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return FileError(errno, "writing", what);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadFully(int fd, size_t max_bytes, absl::string_view what) {
  struct stat info;
  if (fstat(fd, &info) != 0) return FileError(errno, "examining", what);
  if (!S_ISREG(info.st_mode) || static_cast<uint64_t>(info.st_size) > max_bytes) {
    return absl::DataLossError(absl::StrCat(what, " is too long, or no file"));
  }
  std::string bytes(static_cast<size_t>(info.st_size), '\0');
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got = read(fd, bytes.data() + done, bytes.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FileError(errno, "reading", what);
    if (got == 0) return absl::DataLossError(absl::StrCat(what, " is shorter than its size"));
    done += static_cast<size_t>(got);
  }
  return bytes;
}

absl::StatusOr<std::string> ReadFile(const std::string& path, size_t max_bytes) {
  // O_NONBLOCK: opening a pipe in the file's place must not block.
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return FileError(errno, "opening", path);
  return ReadFully(file.get(), max_bytes, path);
}

absl::Status SyncDescriptor(int fd, absl::string_view what) {
  return fsync(fd) == 0 ? absl::OkStatus() : FileError(errno, "syncing", what);
}

absl::Status SyncPath(const std::string& path) {
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return FileError(errno, "opening", path);
  return SyncDescriptor(file.get(), path);
}

absl::Status SyncFolderOf(const std::string& path) { return SyncPath(ParentOf(path)); }

absl::Status SyncTree(const std::string& path) {
  std::error_code error;
  for (auto it = fs::recursive_directory_iterator(path, error);
       !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
    const fs::file_type type = it->symlink_status(error).type();
    if (error) break;
    if (type != fs::file_type::regular && type != fs::file_type::directory) continue;
    MUSTER_RETURN_IF_ERROR(SyncPath(it->path()));
  }
  if (error) return FileError(error.value(), "listing", path);
  return SyncPath(path);
}

absl::Status CreateFolder(const std::string& path, mode_t mode) {
  if (path.empty() || IsFolder(path)) return absl::OkStatus();
  const std::string parent = ParentOf(path);
  if (parent != path) MUSTER_RETURN_IF_ERROR(CreateFolder(parent, mode));
  if (mkdir(path.c_str(), mode) != 0) {
    const int error = errno;
    if (error != EEXIST) return FileError(error, "creating folder", path);
    if (!IsFolder(path)) return FileError(ENOTDIR, "creating folder", path);
  }
  return SyncPath(parent);
}

absl::Status ReplaceFile(const std::string& path, absl::string_view bytes) {
  const std::string temporary = absl::StrCat(path, ".new");
  absl::Status status = WriteTemporary(temporary, bytes);
  if (status.ok() && rename(temporary.c_str(), path.c_str()) != 0) {
    status = FileError(errno, "renaming to", path);
  }
  if (!status.ok()) {
    unlink(temporary.c_str());
    return status;
  }
  return SyncFolderOf(path);
}

absl::Status Rename(const std::string& from, const std::string& to) {
  if (rename(from.c_str(), to.c_str()) != 0) {
    return FileError(errno, absl::StrCat("renaming ", from, " to"), to);
  }
  return SyncFoldersOf(to, from);
}

absl::Status Exchange(const std::string& a, const std::string& b) {
  if (renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) != 0) {
    return FileError(errno, absl::StrCat("exchanging ", a, " and"), b);
  }
  return SyncFoldersOf(b, a);
}

}  // namespace muster::os
