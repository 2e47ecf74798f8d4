#include "muster/scaling/actuator/process/agent_presence.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "muster/base/clock.h"
#include "muster/base/status_macros.h"
#include "muster/scaling/actuator/process/limits.h"

namespace muster::scaling::actuator::process {
namespace {

using os::FileDescriptor;

// An open-file-description lock and not a process's one: that would end with any descriptor of the
// file that this process closes.
struct flock WholeFile(short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  return lock;
}

absl::StatusOr<FileDescriptor> OpenLockFile(const std::string& path) {
  FileDescriptor file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0640));
  if (file.get() < 0) return absl::ErrnoToStatus(errno, absl::StrCat("opening ", path));
  return file;
}

}  // namespace

absl::StatusOr<FileDescriptor> AnnounceAgent(const std::string& path) {
  MUSTER_ASSIGN_OR_RETURN(FileDescriptor file, OpenLockFile(path));
  struct flock lock = WholeFile(F_RDLCK);
  if (fcntl(file.get(), F_OFD_SETLK, &lock) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("locking ", path));
  }
  return file;
}

// Asks only: a lock that was taken to find out would look like an agent to others who ask.
bool HasAgent(int file) {
  struct flock lock = WholeFile(F_WRLCK);
  return fcntl(file, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

absl::StatusOr<FileDescriptor> LockFolder(const std::string& path, absl::Duration limit) {
  MUSTER_ASSIGN_OR_RETURN(FileDescriptor file, OpenLockFile(path));
  const absl::Duration deadline = base::RealClock()->Monotonic() + limit;
  while (flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) {
      return absl::ErrnoToStatus(errno, absl::StrCat("locking ", path));
    }
    if (base::RealClock()->Monotonic() >= deadline) {
      return absl::UnavailableError(
          absl::StrCat("another agent of this host has held ", path, " for too long"));
    }
    absl::SleepFor(kLockRetry);
  }
  return file;
}

}  // namespace muster::scaling::actuator::process
