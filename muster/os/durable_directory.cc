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

namespace muster::os {
namespace {

constexpr absl::string_view kTemporaryPrefix = ".tmp-";
constexpr char kLockName[] = ".lock";
constexpr int kFileMode = 0640;

// Closes on the way out of a scope.
class Fd {
 public:
  explicit Fd(int fd) : fd_(fd) {}
  ~Fd() {
    if (fd_ >= 0) close(fd_);
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;

  int get() const { return fd_; }

 private:
  const int fd_;
};

absl::Status ErrnoStatus(absl::string_view doing, absl::string_view path) {
  return absl::ErrnoToStatus(errno, absl::StrCat(doing, " ", path));
}

absl::Status Sync(int fd, absl::string_view path) {
  return fsync(fd) == 0 ? absl::OkStatus() : ErrnoStatus("syncing", path);
}

absl::StatusOr<int> OpenDirectory(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus("opening directory", path);
  return fd;
}

// A new directory survives a power cut only once its parent has been synced, and so on upwards.
absl::Status CreateDurably(const std::filesystem::path& path) {
  if (std::filesystem::is_directory(path)) return absl::OkStatus();
  const std::filesystem::path parent = path.has_parent_path() ? path.parent_path() : ".";
  MUSTER_RETURN_IF_ERROR(CreateDurably(parent));
  if (mkdir(path.c_str(), 0750) != 0 && errno != EEXIST) {
    return ErrnoStatus("creating directory", path.string());
  }
  MUSTER_ASSIGN_OR_RETURN(const int parent_fd, OpenDirectory(parent.string()));
  return Sync(Fd(parent_fd).get(), parent.string());
}

absl::Status ReadFully(int fd, std::string* bytes, absl::string_view path) {
  size_t done = 0;
  while (done < bytes->size()) {
    const ssize_t got = read(fd, bytes->data() + done, bytes->size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoStatus("reading", path);
    if (got == 0) return absl::DataLossError(absl::StrCat(path, " is shorter than its size"));
    done += static_cast<size_t>(got);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status WriteFully(int fd, absl::string_view bytes, absl::string_view what) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return ErrnoStatus("writing", what);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<DurableDirectory>> DurableDirectory::Own(const std::string& path) {
  // Without a slash at the end, which would make the last part of the path an empty name.
  std::filesystem::path clean = std::filesystem::path(path).lexically_normal();
  if (!clean.has_filename() && clean.has_relative_path()) clean = clean.parent_path();
  MUSTER_RETURN_IF_ERROR(CreateDurably(clean));
  MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<DurableDirectory> directory, View(clean.string()));
  MUSTER_RETURN_IF_ERROR(directory->Lock());
  MUSTER_RETURN_IF_ERROR(directory->RemoveLeftovers());
  return directory;
}

absl::StatusOr<std::unique_ptr<DurableDirectory>> DurableDirectory::View(const std::string& path) {
  MUSTER_ASSIGN_OR_RETURN(const int fd, OpenDirectory(path));
  return std::unique_ptr<DurableDirectory>(new DurableDirectory(path, fd));
}

DurableDirectory::DurableDirectory(std::string path, int directory_fd)
    : path_(std::move(path)), directory_fd_(directory_fd) {}

DurableDirectory::~DurableDirectory() {
  if (lock_fd_ >= 0) close(lock_fd_);
  close(directory_fd_);
}

std::string DurableDirectory::PathOf(absl::string_view name) const {
  return absl::StrCat(path_, "/", name);
}

absl::Status DurableDirectory::Lock() {
  lock_fd_ = openat(directory_fd_, kLockName, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, kFileMode);
  if (lock_fd_ < 0) return ErrnoStatus("opening", PathOf(kLockName));
  if (flock(lock_fd_, LOCK_EX | LOCK_NB) == 0) return absl::OkStatus();
  if (errno != EWOULDBLOCK) return ErrnoStatus("locking", PathOf(kLockName));
  return base::Busy(absl::StrCat(path_, " is in use by another process"));
}

absl::Status DurableDirectory::RemoveLeftovers() {
  std::error_code error;
  for (auto it = std::filesystem::directory_iterator(path_, error);
       !error && it != std::filesystem::directory_iterator(); it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (!absl::StartsWith(name, kTemporaryPrefix)) continue;
    if (unlinkat(directory_fd_, name.c_str(), 0) != 0) return ErrnoStatus("removing", PathOf(name));
  }
  if (error) return absl::ErrnoToStatus(error.value(), absl::StrCat("listing ", path_));
  return absl::OkStatus();
}

absl::Status DurableDirectory::WriteTemporary(const std::string& temporary,
                                              absl::string_view bytes) {
  const Fd fd(
      openat(directory_fd_, temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kFileMode));
  if (fd.get() < 0) return ErrnoStatus("creating", PathOf(temporary));
  MUSTER_RETURN_IF_ERROR(WriteFully(fd.get(), bytes, PathOf(temporary)));
  return Sync(fd.get(), PathOf(temporary));
}

absl::Status DurableDirectory::Replace(absl::string_view name, absl::string_view bytes) {
  if (lock_fd_ < 0) {
    return absl::FailedPreconditionError(absl::StrCat(path_, " is open for reading only"));
  }
  const std::string temporary = absl::StrCat(kTemporaryPrefix, next_temporary_.fetch_add(1));
  absl::Status status = WriteTemporary(temporary, bytes);
  MUSTER_FAILPOINT("blob.before_rename");
  if (status.ok() &&
      renameat(directory_fd_, temporary.c_str(), directory_fd_, std::string(name).c_str()) != 0) {
    status = ErrnoStatus("renaming to", PathOf(name));
  }
  if (!status.ok()) {
    unlinkat(directory_fd_, temporary.c_str(), 0);
    return status;
  }
  MUSTER_FAILPOINT("blob.after_rename");
  return Sync(directory_fd_, path_);
}

absl::StatusOr<std::string> DurableDirectory::Read(absl::string_view name, size_t max_bytes) const {
  // O_NONBLOCK: opening a pipe in the file's place must not block.
  const Fd fd(openat(directory_fd_, std::string(name).c_str(),
                     O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (fd.get() < 0) return ErrnoStatus("opening", PathOf(name));
  struct stat info;
  if (fstat(fd.get(), &info) != 0) return ErrnoStatus("examining", PathOf(name));
  if (!S_ISREG(info.st_mode) || static_cast<uint64_t>(info.st_size) > max_bytes) {
    return absl::DataLossError(absl::StrCat(PathOf(name), " is too long, or no file"));
  }
  std::string bytes(static_cast<size_t>(info.st_size), '\0');
  MUSTER_RETURN_IF_ERROR(ReadFully(fd.get(), &bytes, PathOf(name)));
  return bytes;
}

absl::Status DurableDirectory::Remove(absl::string_view name) {
  if (lock_fd_ < 0) {
    return absl::FailedPreconditionError(absl::StrCat(path_, " is open for reading only"));
  }
  if (unlinkat(directory_fd_, std::string(name).c_str(), 0) != 0 && errno != ENOENT) {
    return ErrnoStatus("removing", PathOf(name));
  }
  return absl::OkStatus();
}

}  // namespace muster::os
