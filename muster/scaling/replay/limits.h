// Every bound of the simulator, with its reason.
#pragma once

#include <cstdint>

#include "absl/time/time.h"

namespace muster::scaling::replay {

// A file of more is no trace: it is read as a whole. 2 GiB hold 60 years of minutes.
inline constexpr uint64_t kMaxTraceBytes = uint64_t{2} << 30;
// Each second takes some hundred nanoseconds, so that a mistaken year would look like a hang.
inline constexpr absl::Duration kMaxSpan = absl::Hours(24 * 366 * 5);
// Work is counted in microseconds, of at most kMaxServiceTime each, in 63 bits.
inline constexpr int64_t kMaxItems = 100'000'000'000;
inline constexpr absl::Duration kMaxServiceTime = absl::Hours(24);
inline constexpr int64_t kMaxWorkUs = int64_t{1} << 60;
// With service by the item, each item is an event, and held in memory.
inline constexpr int64_t kMaxItemsOneByOne = 200'000'000;
inline constexpr int kMaxReplicas = 100'000;
inline constexpr int kMaxTasks = 1'000;
inline constexpr int kMaxSeeds = 10'000;
// After the last item the policies may let their replicas go: Kubernetes takes 300 s for each of
// two windows. What is not let go by then is kept for ever, and costs nothing more.
inline constexpr int64_t kLettingGoSeconds = 900;
// A policy that never serves what waits (fixed 0, say) must come to an end.
inline constexpr int64_t kPatienceSeconds = int64_t{24} * 3600;

}  // namespace muster::scaling::replay
