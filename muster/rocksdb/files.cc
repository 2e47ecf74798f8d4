#include "muster/rocksdb/files.h"

#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"
#include "muster/os/shelf.h"

namespace muster::rocksdb {

namespace fs = std::filesystem;

absl::Status FileError(const std::error_code& error, absl::string_view doing) {
  return absl::ErrnoToStatus(error.value(), doing);
}

absl::StatusOr<std::vector<fs::path>> FilesIn(const std::string& dir) {
  std::vector<fs::path> files;
  std::error_code error;
  for (auto it = fs::directory_iterator(dir, error); !error && it != fs::directory_iterator();
       it.increment(error)) {
    files.push_back(it->path());
  }
  if (error) return FileError(error, absl::StrCat("listing ", dir));
  return files;
}

std::string ParentOf(const std::string& path) {
  const fs::path parent = fs::path(path).parent_path();
  return parent.empty() ? "." : parent.string();
}

absl::Status SyncFilesIn(const std::string& dir) {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<fs::path> files, FilesIn(dir));
  for (const fs::path& file : files) MUSTER_RETURN_IF_ERROR(os::SyncPath(file));
  return os::SyncPath(dir);
}

}  // namespace muster::rocksdb
