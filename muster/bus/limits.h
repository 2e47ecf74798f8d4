// The bounds of the heartbeat seam, each with its reason.
#pragma once

#include <cstddef>

namespace muster::bus {

// About 200 bytes for each job that its instance works for: some hundreds of jobs.
inline constexpr size_t kMaxHeartbeatBytes = size_t{64} << 10;

// In one process: its roster, and whoever else wants to know.
inline constexpr int kMaxHeartbeatSubscriptions = 256;

}  // namespace muster::bus
