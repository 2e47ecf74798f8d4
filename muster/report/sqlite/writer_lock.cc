#include "muster/report/sqlite/writer_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "muster/base/busy.h"

namespace muster::report::sqlite {

absl::StatusOr<WriterLock> WriterLock::Take(const std::string& database) {
  const std::string path = absl::StrCat(database, "-lock");
  const int descriptor = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (descriptor < 0) return absl::ErrnoToStatus(errno, path);
  WriterLock lock(descriptor);
  if (flock(descriptor, LOCK_EX | LOCK_NB) == 0) return lock;
  return base::Busy(absl::StrCat(
      "report ", database, " is being written by another process: open it read-only, or wait"));
}

WriterLock::WriterLock(WriterLock&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)) {}

WriterLock::~WriterLock() {
  if (descriptor_ >= 0) close(descriptor_);
}

}  // namespace muster::report::sqlite
