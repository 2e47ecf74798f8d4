// SPDX-License-Identifier: Apache-2.0

// Records of the sync store: each write is made of what is there, and the last writer wins.
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "muster/sync/optimistic_sync_store.h"

namespace muster::queue_gateway::operations {

// Writers that meet on one record; more is a fault elsewhere.
inline constexpr int kMaxWriteAttempts = 25;

// Makes what is written, of the record that it replaces. It is called again when another writer was
// first; its errors end the write.
using MakeRecord = std::function<absl::StatusOr<std::string>(const sync::VersionedData& before)>;

// Unavailable: others were first each time. Otherwise the statuses of the store, and of `make`.
absl::Status WriteRecord(sync::OptimisticSyncStore* store, absl::string_view key,
                         const MakeRecord& make);

}  // namespace muster::queue_gateway::operations
