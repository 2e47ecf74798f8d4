// How long the leases of a queue last, as its metadata says. Engines whose traits have no
// per_receive_visibility go by it; for the others each receive says it.
#pragma once

#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/queue/queue_store.h"

namespace muster::queue {

// The name in the metadata. Its value is a duration such as "30s" or "1h30m", within what a receive
// may ask (limits.h).
inline constexpr char kVisibilityName[] = "muster-visibility";

// nullopt: `metadata` says nothing of it, or nothing that can be understood.
std::optional<absl::Duration> VisibilityOf(const Metadata& metadata);

// `metadata` with this visibility; nullopt: with none.
Metadata WithVisibility(Metadata metadata, std::optional<absl::Duration> visibility);

// Has the leases of a queue that is there last so long from now on; nullopt: as long as its engine
// would have it. Other metadata stays. The store's statuses.
absl::Status SetVisibility(QueueStore* store, const QueueId& queue,
                           std::optional<absl::Duration> visibility);

}  // namespace muster::queue
