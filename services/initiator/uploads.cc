#include "services/initiator/uploads.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"

namespace muster::initiator {

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

bool Uploads::HasWhole(uint64_t batch) const {
  std::error_code error;
  return std::filesystem::exists(PathOf(batch), error) && !error;
}

std::shared_ptr<Upload> Uploads::Held(uint64_t batch) {
  base::MutexLock lock(&mu_);
  const auto held = held_.find(batch);
  return held == held_.end() ? nullptr : held->second.lock();
}

absl::StatusOr<std::shared_ptr<Upload>> Uploads::Get(uint64_t batch) {
  base::MutexLock lock(&mu_);
  std::weak_ptr<Upload>& held = held_[batch];
  if (std::shared_ptr<Upload> upload = held.lock()) return upload;
  std::erase_if(
      held_, [batch](const auto& other) { return other.first != batch && other.second.expired(); });
  MUSTER_ASSIGN_OR_RETURN(std::shared_ptr<Upload> upload, Upload::Open(PathOf(batch)));
  held_[batch] = upload;
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

}  // namespace muster::initiator
