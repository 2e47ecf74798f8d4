// SPDX-License-Identifier: Apache-2.0

// Replay: moves a group's checkpoint of one partition, for the group's processors to go on there.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "muster/stream/event_stream_store.h"
#include "muster/sync/optimistic_sync_store.h"
#include "muster/telemetry/registry.h"

namespace muster::stream::processor {

struct ProcessorStores {
  EventStreamStore* events = nullptr;         // not owned
  sync::OptimisticSyncStore* sync = nullptr;  // not owned
  telemetry::Registry* metrics = nullptr;     // not owned; null: nothing is recorded
};

// Moves the checkpoint to `offset`, or to the first event that is kept if that is 0, and returns
// where it is. A processor that owns the partition notices within ProcessorOptions::replay_check;
// no checkpoint that it saves before overwrites the move. Other groups are not touched. A group
// that no processor has joined yet begins there when one does; it is listed from now on.
//
// NotFound: no such stream or partition. OutOfRange: the offset is not kept. ResourceExhausted: the
// group is new, and there are partition::kMaxGroups. Otherwise the stores'
// errors, after which it may have been moved.
absl::StatusOr<int64_t> Replay(const ProcessorStores& stores, absl::string_view stream,
                               absl::string_view group, int partition, int64_t offset);

}  // namespace muster::stream::processor
