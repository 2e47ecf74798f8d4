// The bounds of the registry of jobs, each with its reason.
#pragma once

#include <cstddef>
#include <cstdint>

#include "muster/job/limits.h"

namespace muster::job {

// A definition is longer than a record of the sync seam may be (sync/limits.h), so it lies in
// pieces.
inline constexpr size_t kPieceBytes = size_t{48} << 10;

// All jobs stand in one record, so that a change of them is one write. With 113 bytes for each at
// the most, these fit.
inline constexpr size_t kMaxJobs = 500;
// Of all definitions together: List answers them at once.
inline constexpr uint64_t kMaxTotalBytes = uint64_t{64} << 20;
static_assert(kMaxTotalBytes > kMaxJobFileBytes);

// Definitions that a registry remembers. A process has few jobs that it is asked for again and
// again, and a text may be long.
inline constexpr size_t kMaxRemembered = 32;

// Jobs change by hand or by a deployment: whoever loses so many races in a row is better told.
inline constexpr int kMaxRaces = 20;

}  // namespace muster::job
