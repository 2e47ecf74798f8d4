// SPDX-License-Identifier: Apache-2.0
#include "muster/os/quarantine.h"

#include <fcntl.h>
#include <sys/types.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "muster/base/status.h"
#include "muster/os/durable_file.h"
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

}  // namespace

Quarantine::Quarantine(std::string data_dir) : data_dir_(std::move(data_dir)) {}

absl::Status Quarantine::Make() {
  if (!path_.empty()) return absl::OkStatus();
  const fs::path parent = fs::path(data_dir_) / kFolder;
  MUSTER_RETURN_IF_ERROR(CreateFolder(parent));
  MUSTER_RETURN_IF_ERROR(SyncFolderOf(parent));  // a process that died may have made it
  std::error_code error;
  int number = 1;
  while (!error && !fs::create_directory(parent / absl::StrCat(number), error) && !error) ++number;
  if (error) return FileError(error.value(), "making a folder in", parent.string());
  MUSTER_RETURN_IF_ERROR(SyncPath(parent));
  path_ = parent / absl::StrCat(number);
  return absl::OkStatus();
}

absl::Status Quarantine::Keep(const Damage& damage) {
  if (damage.records.empty()) return absl::OkStatus();
  MUSTER_RETURN_IF_ERROR(Make());
  const std::string file = fs::path(path_) / kRecords;
  if (records_.get() < 0) {
    records_ = FileDescriptor(open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, kFileMode));
  }
  if (records_.get() < 0) return FileError(errno, "making", file);
  for (const StoredRecord& record : damage.records) {
    MUSTER_RETURN_IF_ERROR(WriteFully(records_.get(), Line(damage, record), file));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> Quarantine::FolderOf(absl::string_view part) {
  MUSTER_RETURN_IF_ERROR(Make());
  const fs::path folder = fs::path(path_) / std::string(part);
  MUSTER_RETURN_IF_ERROR(CreateFolder(folder));
  return folder.string();
}

absl::Status Quarantine::Sync() {
  if (path_.empty()) return absl::OkStatus();
  if (records_.get() >= 0) MUSTER_RETURN_IF_ERROR(SyncDescriptor(records_.get(), path_));
  return SyncTree(path_);
}

}  // namespace muster::os
