// SPDX-License-Identifier: Apache-2.0

// GroupRegistry: the names of the groups of a mesh, in one record, because a sync store has no
// listing. A member notes its group as it joins. A group that is done with is forgotten by an
// administrator (PartitionAdmin::Forget), since its records keep epochs and checkpoints.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "muster/sync/optimistic_sync_store.h"

namespace muster::partition {

// 512 names of kMaxGroupBytes, with 2 bytes each, fit into 64 KiB.
inline constexpr size_t kMaxGroups = 512;

// Thread-safe. Errors of the store are passed on. A change takes two requests, and at most
// kMaxAttempts times as many where others write at the same time; Aborted beyond that.
class GroupRegistry {
 public:
  static constexpr int kMaxAttempts = 4;

  // `store` is not owned.
  explicit GroupRegistry(sync::OptimisticSyncStore* store) : store_(store) {}

  // The names, sorted.
  absl::StatusOr<std::vector<std::string>> List();
  // Adds `group`; fine if it is there. ResourceExhausted: kMaxGroups are. Such a group works all
  // the same, and is not listed.
  absl::Status Note(absl::string_view group);
  // Removes `group`; fine if it is not there.
  absl::Status Remove(absl::string_view group);

 private:
  absl::Status Change(absl::string_view group, bool add);

  sync::OptimisticSyncStore* const store_;  // not owned
};

}  // namespace muster::partition
