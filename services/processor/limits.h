// The bounds of a processor as a service, with their reasons.
#pragma once

#include <cstddef>

#include "absl/time/time.h"

namespace muster::processor {

// Between two looks at the jobs that nothing triggered: a change whose event was lost waits so
// long.
inline constexpr absl::Duration kLookInterval = absl::Seconds(30);

// Earlier revisions that are kept at hand, with their pools of handlers. Batches that are open at a
// time are bound to fewer; the one that was asked for least lately makes room.
inline constexpr size_t kMaxRevisions = 64;
// A revision that was not found is not looked for again so soon: each item of its batch asks.
inline constexpr absl::Duration kMissingRevisionFor = absl::Seconds(10);

// Workers of one job; each is a thread. As a listener has it at the most.
inline constexpr int kMaxThreads = 1000;

}  // namespace muster::processor
