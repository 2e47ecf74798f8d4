// SPDX-License-Identifier: Apache-2.0

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
  absl::StatusOr<bool> TryDelete(absl::string_view key, uint64_t version) override;

  // Sets the answer of the next Get, or TryWrite, which then does nothing else. Calls queue up.
  void FailNextGet(absl::Status status);
  void FailNextWrite(absl::Status status);
  // The next `n` TryWrites lose the race against another writer.
  void LoseNextWrites(int n);

  // Writes without a check of the version.
  void Overwrite(absl::string_view key, absl::string_view data);

  // Drop one record, or all of them, like a store that loses data.
  void Erase(const std::string& key);
  void Clear();

  // Counts the TryWrites so far, also those that failed.
  int writes_tried() const;

 private:
  mutable base::Mutex mu_;
  std::map<std::string, VersionedData, std::less<>> records_ ABSL_GUARDED_BY(mu_);
  uint64_t last_version_ ABSL_GUARDED_BY(mu_) = kAbsent;
  std::deque<absl::Status> get_failures_ ABSL_GUARDED_BY(mu_);
  std::deque<absl::Status> write_outcomes_ ABSL_GUARDED_BY(mu_);  // OK: the write loses the race
  int writes_tried_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace muster::sync::testing
