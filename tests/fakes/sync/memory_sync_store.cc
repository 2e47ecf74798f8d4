// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/sync/memory_sync_store.h"

#include <utility>

#include "muster/base/status.h"
#include "muster/sync/optimistic_sync_store.h"

namespace muster::sync::testing {

absl::StatusOr<VersionedData> MemorySyncStore::Get(absl::string_view key) {
  MUSTER_RETURN_IF_ERROR(ValidateKey(key));
  base::MutexLock lock(&mu_);
  if (!get_failures_.empty()) {
    const absl::Status failure = std::move(get_failures_.front());
    get_failures_.pop_front();
    return failure;
  }
  const auto it = records_.find(std::string(key));
  return it == records_.end() ? VersionedData() : it->second;
}

absl::StatusOr<bool> MemorySyncStore::TryWrite(absl::string_view key, absl::string_view data,
                                               uint64_t version) {
  MUSTER_RETURN_IF_ERROR(ValidateKey(key));
  MUSTER_RETURN_IF_ERROR(ValidateData(key, data));
  base::MutexLock lock(&mu_);
  ++writes_tried_;
  if (!write_outcomes_.empty()) {
    const absl::Status outcome = std::move(write_outcomes_.front());
    write_outcomes_.pop_front();
    MUSTER_RETURN_IF_ERROR(outcome);
    return false;
  }
  const auto it = records_.find(std::string(key));
  const uint64_t stored = it == records_.end() ? kAbsent : it->second.version;
  if (stored != version) return false;
  records_[std::string(key)] = {.data = std::string(data), .version = ++last_version_};
  return true;
}

absl::StatusOr<bool> MemorySyncStore::TryDelete(absl::string_view key, uint64_t version) {
  MUSTER_RETURN_IF_ERROR(ValidateKey(key));
  base::MutexLock lock(&mu_);
  const auto it = records_.find(std::string(key));
  if (it == records_.end() || it->second.version != version) return false;
  records_.erase(it);
  return true;
}

void MemorySyncStore::FailNextGet(absl::Status status) {
  base::MutexLock lock(&mu_);
  get_failures_.push_back(std::move(status));
}

void MemorySyncStore::FailNextWrite(absl::Status status) {
  base::MutexLock lock(&mu_);
  write_outcomes_.push_back(std::move(status));
}

void MemorySyncStore::LoseNextWrites(int n) {
  base::MutexLock lock(&mu_);
  for (int i = 0; i < n; ++i) write_outcomes_.push_back(absl::OkStatus());
}

void MemorySyncStore::Overwrite(absl::string_view key, absl::string_view data) {
  base::MutexLock lock(&mu_);
  records_[std::string(key)] = {.data = std::string(data), .version = ++last_version_};
}

void MemorySyncStore::Erase(const std::string& key) {
  base::MutexLock lock(&mu_);
  records_.erase(key);
}

void MemorySyncStore::Clear() {
  base::MutexLock lock(&mu_);
  records_.clear();
}

int MemorySyncStore::writes_tried() const {
  base::MutexLock lock(&mu_);
  return writes_tried_;
}

}  // namespace muster::sync::testing
