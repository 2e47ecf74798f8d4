// SPDX-License-Identifier: Apache-2.0

// GlobalFlag: a flag that all processes share. It is set if and only if its record exists
// in the sync store; what the record holds does not matter.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "muster/sync/optimistic_sync_store.h"

namespace muster::release {

// Thread-safe; any number of flags, in any number of processes, may share a name. Errors are the
// store's, such as Unavailable; after one the outcome of a change is unknown, and repeating it is
// right. A set flag takes one small record, until it is unset.
class GlobalFlag {
 public:
  // `store` is not owned. `name` is a part of a sync key (sync::ValidateKey).
  GlobalFlag(sync::OptimisticSyncStore* store, absl::string_view name);

  // A record that is not there is false, not an error.
  absl::StatusOr<bool> Get();
  // OK: it is set, by this call or by another one.
  absl::Status Set();
  // Removes the record if there is one. Aborted: it was set anew again and again meanwhile.
  absl::Status Unset();

 private:
  sync::OptimisticSyncStore* const store_;  // not owned
  const std::string key_;
};

}  // namespace muster::release
