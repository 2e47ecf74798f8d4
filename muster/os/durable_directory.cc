// SPDX-License-Identifier: Apache-2.0
#include "muster/os/durable_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "muster/base/failpoint.h"
#include "muster/base/status.h"
#include "muster/os/durable_file.h"

namespace muster::os {
namespace {

constexpr absl::string_view kTemporaryPrefix = ".tmp-";
constexpr char kLockName[] = ".lock";
constexpr mode_t kFolderMode = 0750;

}  // namespace

absl::StatusOr<std::unique_ptr<DurableDirectory>> DurableDirectory::Own(const std::string& path) {
  MUSTER_RETURN_IF_ERROR(CreateFolder(path, kFolderMode));
  MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<DurableDirectory> directory, View(path));
  MUSTER_RETURN_IF_ERROR(directory->Lock());
  MUSTER_RETURN_IF_ERROR(directory->RemoveLeftovers());
  return directory;
}

absl::StatusOr<std::unique_ptr<DurableDirectory>> DurableDirectory::View(const std::string& path) {
  FileDescriptor folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() < 0) return FileError(errno, "opening directory", path);
  return std::unique_ptr<DurableDirectory>(new DurableDirectory(path, std::move(folder)));
}

DurableDirectory::DurableDirectory(std::string path, FileDescriptor folder)
    : path_(std::move(path)), folder_(std::move(folder)) {}

std::string DurableDirectory::PathOf(absl::string_view name) const {
  return absl::StrCat(path_, "/", name);
}

absl::Status DurableDirectory::Lock() {
  constexpr int kFlags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW;
  lock_ = FileDescriptor(openat(folder_.get(), kLockName, kFlags, kFileMode));
  if (lock_.get() < 0) return FileError(errno, "opening", PathOf(kLockName));
  if (flock(lock_.get(), LOCK_EX | LOCK_NB) == 0) return absl::OkStatus();
  if (errno != EWOULDBLOCK) return FileError(errno, "locking", PathOf(kLockName));
  return base::Busy(absl::StrCat(path_, " is in use by another process"));
}

absl::Status DurableDirectory::RemoveLeftovers() {
  std::error_code error;
  for (auto it = std::filesystem::directory_iterator(path_, error);
       !error && it != std::filesystem::directory_iterator(); it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (!absl::StartsWith(name, kTemporaryPrefix)) continue;
    if (unlinkat(folder_.get(), name.c_str(), 0) != 0)
      return FileError(errno, "removing", PathOf(name));
  }
  if (error) return FileError(error.value(), "listing", path_);
  return absl::OkStatus();
}

absl::Status DurableDirectory::WriteTemporary(const std::string& temporary,
                                              absl::string_view bytes) {
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
  const FileDescriptor file(openat(folder_.get(), temporary.c_str(), kFlags, kFileMode));
  if (file.get() < 0) return FileError(errno, "creating", PathOf(temporary));
  MUSTER_RETURN_IF_ERROR(WriteFully(file.get(), bytes, PathOf(temporary)));
  return SyncDescriptor(file.get(), PathOf(temporary));
}

absl::Status DurableDirectory::Replace(absl::string_view name, absl::string_view bytes) {
  if (lock_.get() < 0) {
    return absl::FailedPreconditionError(absl::StrCat(path_, " is open for reading only"));
  }
  const std::string temporary = absl::StrCat(kTemporaryPrefix, next_temporary_.fetch_add(1));
  absl::Status status = WriteTemporary(temporary, bytes);
  MUSTER_FAILPOINT("blob.before_rename");
  if (status.ok() &&
      renameat(folder_.get(), temporary.c_str(), folder_.get(), std::string(name).c_str()) != 0) {
    status = FileError(errno, "renaming to", PathOf(name));
  }
  if (!status.ok()) {
    unlinkat(folder_.get(), temporary.c_str(), 0);
    return status;
  }
  MUSTER_FAILPOINT("blob.after_rename");
  return SyncDescriptor(folder_.get(), path_);
}

absl::StatusOr<std::string> DurableDirectory::Read(absl::string_view name, size_t max_bytes) const {
  // O_NONBLOCK: opening a pipe in the file's place must not block.
  constexpr int kFlags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  const FileDescriptor file(openat(folder_.get(), std::string(name).c_str(), kFlags));
  if (file.get() < 0) return FileError(errno, "opening", PathOf(name));
  return ReadFully(file.get(), max_bytes, PathOf(name));
}

absl::Status DurableDirectory::Remove(absl::string_view name) {
  if (lock_.get() < 0) {
    return absl::FailedPreconditionError(absl::StrCat(path_, " is open for reading only"));
  }
  if (unlinkat(folder_.get(), std::string(name).c_str(), 0) != 0 && errno != ENOENT) {
    return FileError(errno, "removing", PathOf(name));
  }
  return absl::OkStatus();
}

}  // namespace muster::os
