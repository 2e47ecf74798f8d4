// The files of a database, for those who mend it while no RocksDB has it open.
#pragma once

#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster::rocksdb {

absl::Status FileError(const std::error_code& error, absl::string_view doing);

// Whatever is in `dir`, in no order.
absl::StatusOr<std::vector<std::filesystem::path>> FilesIn(const std::string& dir);

// "." of a path that names none.
std::string ParentOf(const std::string& path);

// All of `dir`, and that it is there, on disk.
absl::Status SyncFilesIn(const std::string& dir);

}  // namespace muster::rocksdb
