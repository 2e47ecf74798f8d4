// SPDX-License-Identifier: Apache-2.0

// Records of the sync store that are replaced whole: the last writer wins.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "muster/sync/optimistic_sync_store.h"

namespace muster::queue_gateway::operations {

// Writers that meet on one record; more is a fault elsewhere.
inline constexpr int kMaxWriteAttempts = 25;

// Unavailable: others were first each time. Otherwise the statuses of the store.
absl::Status WriteRecord(sync::OptimisticSyncStore* store, absl::string_view key,
                         absl::string_view data);

}  // namespace muster::queue_gateway::operations
