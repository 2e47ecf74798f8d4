// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/submit/uploads.h"

#include <sys/stat.h>

#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "muster/base/status.h"
#include "muster/os/durable_file.h"
#include "services/initiator/batch/source.h"

namespace muster::initiator::submit {

namespace {

bool Exists(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error) && !error;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Uploads>> Uploads::Open(const std::string& folder,
                                                       base::Clock* clock) {
  absl::Status made = os::CreateFolder(folder);
  std::error_code error;
  const std::filesystem::path whole = std::filesystem::canonical(folder, error);
  if (made.ok() && error) made = os::FileError(error.value(), "finding", folder);
  if (!made.ok()) {
    return absl::UnavailableError(
        absl::StrCat("the folder of uploads ", folder, ": ", made.message()));
  }
  return std::unique_ptr<Uploads>(new Uploads(whole.string(), clock));
}

std::string Uploads::PathOf(uint64_t batch) const { return absl::StrCat(folder_, "/", batch); }

bool Uploads::IsSealed(uint64_t batch) const { return Exists(PathOf(batch)); }

std::string Uploads::ContentPathOf(uint64_t batch) const {
  return std::filesystem::path(PathOf(batch))
      .lexically_relative(std::filesystem::path(folder_).parent_path());
}

// The records of an older muster have the absolute path alone: if there is no file at that path any
// more, or one lies here, the data directory has moved.
bool Uploads::Stores(const ledger::Batch& batch) const {
  const std::string content_path = ContentPathOf(batch.number);
  if (!batch.content_path.empty()) return batch.content_path == content_path;
  if (batch.source_path == PathOf(batch.number)) return true;
  if (!absl::EndsWith(batch.source_path, absl::StrCat("/", content_path))) return false;
  const bool is_there = Exists(batch.source_path) || Exists(ArrivingPath(batch.source_path));
  const bool is_here = IsSealed(batch.number) || Exists(ArrivingPath(PathOf(batch.number)));
  return is_here || !is_there;
}

absl::StatusOr<std::string> Uploads::FileOf(const ledger::Batch& batch) const {
  if (!Stores(batch)) return batch.source_path;
  const std::string whole = PathOf(batch.number);
  // It may be renamed between the first two looks.
  for (const std::string& path : {whole, ArrivingPath(whole), whole}) {
    if (Exists(path)) return path;
  }
  return absl::NotFoundError(absl::StrCat("the content of batch ", batch.number, " is not there"));
}

absl::StatusOr<std::shared_ptr<const input::ByteSource>> Uploads::OpenRecorded(
    const ledger::Batch& batch) const {
  if (!batch.content.empty()) return batch::SourceOf(batch.content);
  // Once more after NotFound: the file may have been renamed in between.
  absl::Status missing;
  for (int attempt = 0; attempt < 2; ++attempt) {
    MUSTER_ASSIGN_OR_RETURN(const std::string path, FileOf(batch));
    absl::StatusOr<std::unique_ptr<input::FileSource>> file =
        input::FileSource::Open(path, "the content");
    if (!absl::IsNotFound(file.status())) return file;
    missing = file.status();
  }
  return missing;
}

absl::StatusOr<std::shared_ptr<const input::ByteSource>> Uploads::OpenContent(uint64_t batch) {
  return Get(batch);
}

std::optional<uint64_t> Uploads::DurableBytes(uint64_t batch) {
  const std::shared_ptr<Upload> upload = Held(batch);
  if (upload == nullptr) return std::nullopt;
  return upload->durable_size();
}

std::optional<content::ContentStore::Arrived> Uploads::ArrivedOf(uint64_t batch) {
  if (const std::shared_ptr<Upload> upload = Held(batch); upload != nullptr) {
    if (upload->sealed()) return std::nullopt;
    return Arrived{upload->size_so_far(), upload->last_arrival()};
  }
  if (IsSealed(batch)) return std::nullopt;
  struct stat file;
  // An upload of which nothing has arrived may have no file.
  if (stat(ArrivingPath(PathOf(batch)).c_str(), &file) != 0 || file.st_size == 0) return Arrived{};
  return Arrived{static_cast<uint64_t>(file.st_size), absl::TimeFromTimespec(file.st_mtim)};
}

absl::StatusOr<std::shared_ptr<const input::ByteSource>> Uploads::EndArrival(
    uint64_t batch, const absl::Status& why) {
  MUSTER_ASSIGN_OR_RETURN(std::shared_ptr<Upload> upload, Get(batch));
  if (!upload->EndArrival(why)) return nullptr;
  return upload;
}

void Uploads::Refuse(uint64_t batch, const absl::Status& why) {
  if (const std::shared_ptr<Upload> upload = Held(batch); upload != nullptr) upload->Refuse(why);
}

std::shared_ptr<Upload> Uploads::Held(uint64_t batch) {
  base::MutexLock lock(&mu_);
  const auto held = held_.find(batch);
  return held == held_.end() ? nullptr : held->second.lock();
}

absl::StatusOr<std::shared_ptr<Upload>> Uploads::Get(uint64_t batch) {
  std::shared_ptr<Upload> upload;
  {
    base::MutexLock lock(&mu_);
    if (const auto held = held_.find(batch); held != held_.end()) upload = held->second.lock();
    if (upload == nullptr) {
      std::erase_if(held_, [](const auto& other) { return other.second.expired(); });
      MUSTER_ASSIGN_OR_RETURN(upload, Upload::Open(PathOf(batch), clock_));
      held_[batch] = upload;
    }
  }
  // Outside the lock: the sync may be long, and other batches need their uploads meanwhile. Also
  // for an upload that another caller has opened, and may still be syncing.
  MUSTER_RETURN_IF_ERROR(upload->SyncFound());
  return upload;
}

absl::Status Uploads::Delete(uint64_t batch) {
  base::MutexLock lock(&mu_);
  held_.erase(batch);
  const std::string path = PathOf(batch);
  for (const std::string& file : {path, ArrivingPath(path)}) {
    std::error_code error;
    std::filesystem::remove(file, error);
    if (error) return absl::UnavailableError(absl::StrCat("delete ", file, ": ", error.message()));
  }
  return absl::OkStatus();
}

}  // namespace muster::initiator::submit
