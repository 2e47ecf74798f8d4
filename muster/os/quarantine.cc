#include "muster/os/quarantine.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

namespace muster::os {
namespace {

namespace fs = std::filesystem;

constexpr char kFolder[] = "damaged";
constexpr char kRecords[] = "records.jsonl";

std::string Line(const Damage& damage, const StoredRecord& record) {
  const nlohmann::ordered_json json = {
      {"part", damage.part},
      {"kind", damage.kind},
      {"name", damage.name},
      {"why", damage.why},
      {"family", record.family},
      {"key", absl::BytesToHexString(record.key)},
      {"value", absl::Base64Escape(record.value)},
  };
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

absl::Status WriteFully(int fd, absl::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return absl::ErrnoToStatus(errno, absl::StrCat("writing ", path));
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status SyncPath(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return absl::ErrnoToStatus(errno, absl::StrCat("opening ", path));
  const int failed = fsync(fd) == 0 ? 0 : errno;
  close(fd);
  if (failed != 0) return absl::ErrnoToStatus(failed, absl::StrCat("syncing ", path));
  return absl::OkStatus();
}

Quarantine::Quarantine(std::string data_dir) : data_dir_(std::move(data_dir)) {}

Quarantine::~Quarantine() {
  if (records_fd_ >= 0) close(records_fd_);
}

absl::Status Quarantine::Make() {
  if (!path_.empty()) return absl::OkStatus();
  const fs::path parent = fs::path(data_dir_) / kFolder;
  std::error_code error;
  fs::create_directories(parent, error);
  int number = 1;
  while (!error && !fs::create_directory(parent / absl::StrCat(number), error) && !error) ++number;
  if (error) {
    return absl::ErrnoToStatus(error.value(), absl::StrCat("making a folder in ", parent.string()));
  }
  if (absl::Status status = SyncPath(data_dir_); !status.ok()) return status;
  if (absl::Status status = SyncPath(parent); !status.ok()) return status;
  path_ = parent / absl::StrCat(number);
  return absl::OkStatus();
}

absl::Status Quarantine::Keep(const Damage& damage) {
  if (damage.records.empty()) return absl::OkStatus();
  if (absl::Status status = Make(); !status.ok()) return status;
  const std::string file = fs::path(path_) / kRecords;
  if (records_fd_ < 0) records_fd_ = open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0640);
  if (records_fd_ < 0) return absl::ErrnoToStatus(errno, absl::StrCat("making ", file));
  for (const StoredRecord& record : damage.records) {
    if (absl::Status status = WriteFully(records_fd_, Line(damage, record), file); !status.ok())
      return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> Quarantine::FolderOf(absl::string_view part) {
  if (absl::Status status = Make(); !status.ok()) return status;
  const fs::path folder = fs::path(path_) / std::string(part);
  std::error_code error;
  fs::create_directory(folder, error);
  if (error) return absl::ErrnoToStatus(error.value(), absl::StrCat("making ", folder.string()));
  return folder.string();
}

absl::Status Quarantine::Sync() {
  if (path_.empty()) return absl::OkStatus();
  if (records_fd_ >= 0 && fsync(records_fd_) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("syncing ", path_));
  }
  std::error_code error;
  for (auto it = fs::recursive_directory_iterator(path_, error);
       !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
    if (absl::Status status = SyncPath(it->path()); !status.ok()) return status;
  }
  if (error) return absl::ErrnoToStatus(error.value(), absl::StrCat("listing ", path_));
  return SyncPath(path_);
}

}  // namespace muster::os
