// SPDX-License-Identifier: Apache-2.0
#include "muster/actuator/process/state_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "muster/actuator/process/limits.h"
#include "muster/base/clock.h"
#include "muster/base/status.h"
#include "muster/os/durable_file.h"
#include "muster/os/file_descriptor.h"
#include "nlohmann/json.hpp"

namespace muster::actuator::process {

namespace {

using os::FileDescriptor;

// An open-file-description lock. A process lock would end as soon as this process closed any
// descriptor of the file.
struct flock WholeFile(short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  return lock;
}

absl::StatusOr<FileDescriptor> OpenLockFile(const std::string& path) {
  FileDescriptor file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0640));
  if (file.get() < 0) return os::FileError(errno, "opening", path);
  return file;
}

}  // namespace

absl::StatusOr<FileDescriptor> AnnounceAgent(const std::string& path) {
  MUSTER_ASSIGN_OR_RETURN(FileDescriptor file, OpenLockFile(path));
  struct flock lock = WholeFile(F_RDLCK);
  if (fcntl(file.get(), F_OFD_SETLK, &lock) != 0) {
    return os::FileError(errno, "locking", path);
  }
  return file;
}

// Queries without locking: a lock taken for the query would look like an agent to other keepers.
bool HasAgent(int file) {
  struct flock lock = WholeFile(F_WRLCK);
  return fcntl(file, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

absl::StatusOr<FileDescriptor> LockFolder(const std::string& path, absl::Duration limit) {
  MUSTER_ASSIGN_OR_RETURN(FileDescriptor file, OpenLockFile(path));
  const absl::Duration deadline = base::RealClock()->Monotonic() + limit;
  while (flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) {
      return os::FileError(errno, "locking", path);
    }
    if (base::RealClock()->Monotonic() >= deadline) {
      return absl::UnavailableError(
          absl::StrCat("another agent of this host has held ", path, " for too long"));
    }
    absl::SleepFor(kLockRetry);
  }
  return file;
}

namespace {

using Json = nlohmann::json;

// A change that older readers would misread needs another number.
constexpr int kOrdersVersion = 1;
constexpr char kOrdersKey[] = "muster_orders";

}  // namespace

int DesiredState::WantedOf(std::string_view target) const {
  const auto found = wanted.find(target);
  return found == wanted.end() ? 0 : found->second;
}

std::string EncodeDesiredState(const DesiredState& orders) {
  return Json({{kOrdersKey, kOrdersVersion},
               {"highest_token", orders.highest_token},
               {"wanted", orders.wanted}})
             .dump(-1, ' ', false, Json::error_handler_t::replace) +
         "\n";
}

absl::StatusOr<DesiredState> DecodeDesiredState(absl::string_view text) {
  const Json object = Json::parse(text.begin(), text.end(), nullptr, false);
  if (!object.is_object() || object.value(kOrdersKey, Json()) != kOrdersVersion) {
    return absl::DataLossError(absl::StrCat("no '", kOrdersKey, "' of version ", kOrdersVersion));
  }
  try {
    DesiredState orders;
    orders.highest_token = object.at("highest_token").get<int64_t>();
    for (const auto& [target, wanted] : object.at("wanted").items()) {
      orders.wanted.emplace(target, std::clamp(wanted.get<int>(), 0, kMaxReplicas));
    }
    return orders;
  } catch (const Json::exception& error) {
    return absl::DataLossError(error.what());
  }
}

absl::StatusOr<DesiredState> ReadDesiredState(const std::string& path) {
  const absl::StatusOr<std::string> text = os::ReadFile(path, kMaxStateFileBytes);
  if (absl::IsNotFound(text.status())) return DesiredState();
  MUSTER_RETURN_IF_ERROR(text.status());
  absl::StatusOr<DesiredState> orders = DecodeDesiredState(*text);
  if (!orders.ok()) return base::Annotate(orders.status(), path);
  return orders;
}

absl::Status WriteDesiredState(const std::string& path, const DesiredState& orders) {
  return os::ReplaceFile(path, EncodeDesiredState(orders));
}

namespace {

using nlohmann::json;

// A change that older readers would misread needs another number.
constexpr int kRecordVersion = 1;
constexpr char kRecordKey[] = "muster_replica";
constexpr char kEndKey[] = "muster_replica_end";

// A program's output may hold any bytes: what is not UTF-8 is replaced.
std::string LineOf(const json& object) {
  return object.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

absl::StatusOr<json> ObjectOf(absl::string_view text, const char* version_key) {
  json object = json::parse(text.begin(), text.end(), nullptr, false);
  if (!object.is_object() || object.value(version_key, json()) != kRecordVersion) {
    return absl::DataLossError(absl::StrCat("no '", version_key, "' of version ", kRecordVersion));
  }
  return object;
}

}  // namespace

std::string EncodeRecord(const ReplicaRecord& record) {
  return LineOf({{kRecordKey, kRecordVersion},
                 {"instance", record.instance},
                 {"target", record.target},
                 {"pid", record.keeper.pid},
                 {"start_ticks", record.keeper.start_ticks},
                 {"boot", record.keeper.boot},
                 {"started_us", absl::ToUnixMicros(record.started)},
                 {"program", record.program}});
}

absl::StatusOr<ReplicaRecord> DecodeRecord(absl::string_view text) {
  MUSTER_ASSIGN_OR_RETURN(const json object, ObjectOf(text, kRecordKey));
  try {
    return ReplicaRecord{
        object.at("instance").get<std::string>(), object.at("target").get<std::string>(),
        os::ProcessIdentity{object.at("pid").get<pid_t>(), object.at("start_ticks").get<uint64_t>(),
                            object.at("boot").get<std::string>()},
        absl::FromUnixMicros(object.at("started_us").get<int64_t>()),
        object.value("program", std::vector<std::string>())};
  } catch (const json::exception& error) {
    return absl::DataLossError(error.what());
  }
}

std::string EncodeEnd(const ReplicaEnd& end) {
  return LineOf({{kEndKey, kRecordVersion},
                 {"how", end.how},
                 {"last_lines", end.last_lines},
                 {"ran_us", absl::ToInt64Microseconds(end.ran)}});
}

absl::StatusOr<ReplicaEnd> DecodeEnd(absl::string_view text) {
  MUSTER_ASSIGN_OR_RETURN(const json object, ObjectOf(text, kEndKey));
  try {
    return ReplicaEnd{object.at("how").get<std::string>(),
                      object.at("last_lines").get<std::string>(),
                      absl::Microseconds(object.at("ran_us").get<int64_t>())};
  } catch (const json::exception& error) {
    return absl::DataLossError(error.what());
  }
}

std::string ReplicaFolder::instance() const {
  return std::filesystem::path(path_).filename().string();
}

absl::Status ReplicaFolder::WriteRecord(const ReplicaRecord& record) const {
  return os::ReplaceFile(PathOf("record"), EncodeRecord(record));
}

absl::StatusOr<ReplicaRecord> ReplicaFolder::ReadRecord() const {
  MUSTER_ASSIGN_OR_RETURN(const std::string text,
                          os::ReadFile(PathOf("record"), kMaxStateFileBytes));
  absl::StatusOr<ReplicaRecord> record = DecodeRecord(text);
  if (!record.ok()) return base::Annotate(record.status(), PathOf("record"));
  return record;
}

absl::Status ReplicaFolder::WriteEnd(const ReplicaEnd& end) const {
  return os::ReplaceFile(PathOf("end"), EncodeEnd(end));
}

absl::StatusOr<ReplicaEnd> ReplicaFolder::ReadEnd() const {
  MUSTER_ASSIGN_OR_RETURN(const std::string text, os::ReadFile(PathOf("end"), kMaxStateFileBytes));
  return DecodeEnd(text);
}

absl::Status ReplicaFolder::WriteMetrics(absl::string_view address) const {
  return os::ReplaceFile(PathOf("metrics"), address);
}

std::string ReplicaFolder::ReadMetrics() const {
  return os::ReadFile(PathOf("metrics"), kMaxStateFileBytes).value_or("");
}

bool ReplicaFolder::Has(Mark mark) const { return access(PathOf(mark).c_str(), F_OK) == 0; }

// Not synced: after a power cut the replica is one of an earlier boot, and its marks do not matter.
absl::Status ReplicaFolder::Set(Mark mark) const {
  const std::string path = PathOf(mark);
  const os::FileDescriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0640));
  return file.get() >= 0 ? absl::OkStatus() : os::FileError(errno, "creating", path);
}

void ReplicaFolder::Clear(Mark mark) const { unlink(PathOf(mark).c_str()); }

std::string ReplicaFolder::PathOf(absl::string_view name) const {
  return absl::StrCat(path_, "/", name);
}

std::string ReplicaFolder::PathOf(Mark mark) const {
  switch (mark) {
    case Mark::kReady:
      return PathOf("ready");
    case Mark::kLeaving:
      return PathOf("leaving");
    case Mark::kUnattended:
      break;
  }
  return PathOf("unattended");
}

}  // namespace muster::actuator::process
