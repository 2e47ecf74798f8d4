#include "services/initiator/batch/uploads.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"

namespace muster::initiator::batch {

absl::StatusOr<std::unique_ptr<Uploads>> Uploads::Open(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  std::filesystem::path whole;
  if (!error) whole = std::filesystem::canonical(folder, error);
  if (error) {
    return absl::UnavailableError(
        absl::StrCat("the folder of uploads ", folder, ": ", error.message()));
  }
  return std::unique_ptr<Uploads>(new Uploads(whole.string()));
}

std::string Uploads::PathOf(uint64_t batch) const { return absl::StrCat(folder_, "/", batch); }

bool Uploads::IsSealed(uint64_t batch) const {
  std::error_code error;
  return std::filesystem::exists(PathOf(batch), error) && !error;
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
    if (upload != nullptr) return upload;
    std::erase_if(held_, [](const auto& other) { return other.second.expired(); });
    MUSTER_ASSIGN_OR_RETURN(upload, Upload::Open(PathOf(batch)));
    held_[batch] = upload;
  }
  // It may be long, and others want theirs meanwhile.
  MUSTER_RETURN_IF_ERROR(upload->Sync());
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

}  // namespace muster::initiator::batch
