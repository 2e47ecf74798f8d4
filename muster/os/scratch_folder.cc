// SPDX-License-Identifier: Apache-2.0
#include "muster/os/scratch_folder.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "absl/base/call_once.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace muster::os {
namespace {

constexpr absl::string_view kPrefix = "muster-scratch-";
constexpr absl::Duration kTimeToLock = absl::Minutes(1);

FileDescriptor OpenFolder(const std::string& path) {
  return FileDescriptor(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

bool IsAbandoned(const FileDescriptor& folder, absl::Time now) {
  struct stat found = {};
  return fstat(folder.get(), &found) == 0 && found.st_uid == geteuid() &&
         absl::TimeFromTimespec(found.st_ctim) < now - kTimeToLock &&
         flock(folder.get(), LOCK_EX | LOCK_NB) == 0;
}

}  // namespace

void RemoveAbandonedScratchFolders(const std::string& folder, absl::Time now) {
  std::error_code ignored;
  for (std::filesystem::directory_iterator entry(folder, ignored), end; !ignored && entry != end;
       entry.increment(ignored)) {
    const std::string path = entry->path().string();
    if (!absl::StartsWith(entry->path().filename().string(), kPrefix)) continue;
    const FileDescriptor found = OpenFolder(path);
    std::error_code stays;
    if (found.get() >= 0 && IsAbandoned(found, now)) std::filesystem::remove_all(path, stays);
  }
}

absl::StatusOr<std::unique_ptr<ScratchFolder>> ScratchFolder::Make() {
  const char* const named = std::getenv("TMPDIR");  // NOLINT(concurrency-mt-unsafe): never changed
  std::error_code error;
  // Programs that are told of it run in other folders.
  const std::string folder =
      std::filesystem::absolute(named == nullptr || *named == '\0' ? "/tmp" : named, error)
          .string();
  static absl::once_flag swept;
  absl::call_once(swept, [&folder] { RemoveAbandonedScratchFolders(folder, absl::Now()); });
  std::string path = absl::StrCat(folder, "/", kPrefix, "XXXXXX");
  if (mkdtemp(path.data()) == nullptr) {
    return absl::ErrnoToStatus(errno, absl::StrCat("no folder for temporary files in ", folder,
                                                   ", which TMPDIR may name"));
  }
  FileDescriptor lock = OpenFolder(path);
  // Where directories cannot be locked, none is ever taken for abandoned.
  (void)flock(lock.get(), LOCK_EX | LOCK_NB);
  return std::unique_ptr<ScratchFolder>(new ScratchFolder(std::move(path), std::move(lock)));
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;  // what is left lies in the folder for temporary files
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace muster::os
