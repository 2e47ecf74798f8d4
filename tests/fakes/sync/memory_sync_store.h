// MemorySyncStore: an OptimisticSyncStore for tests. Keeps nothing, and fails on command.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "muster/base/mutex.h"
#include "muster/sync/optimistic_sync_store.h"

namespace muster::sync::testing {

// Thread-safe.
class MemorySyncStore final : public OptimisticSyncStore {
 public:
  absl::StatusOr<VersionedData> Get(absl::string_view key) override;
  absl::StatusOr<bool> TryWrite(absl::string_view key, absl::string_view data,
                                uint64_t version) override;

  // The next Get, or TryWrite, answers this instead of doing anything. Calls queue up.
  void FailNextGet(absl::Status status);
  void FailNextWrite(absl::Status status);
  // The next `n` TryWrites find that somebody else was first.
  void LoseNextWrites(int n);

  // Writes whatever the version.
  void Overwrite(absl::string_view key, absl::string_view data);

  // As a store that lost it, or all.
  void Erase(const std::string& key);
  void Clear();

  // TryWrites so far, whatever became of them.
  int writes_tried() const;

 private:
  mutable base::Mutex mu_;
  std::map<std::string, VersionedData, std::less<>> records_ ABSL_GUARDED_BY(mu_);
  uint64_t last_version_ ABSL_GUARDED_BY(mu_) = kAbsent;
  std::deque<absl::Status> get_failures_ ABSL_GUARDED_BY(mu_);
  std::deque<absl::Status> write_outcomes_ ABSL_GUARDED_BY(mu_);  // OK: lost the race
  int writes_tried_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace muster::sync::testing
