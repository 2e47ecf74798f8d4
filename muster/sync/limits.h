// The bounds of the sync seam, each with its reason.
#pragma once

#include <cstddef>

namespace muster::sync {

// Keys name a thing and its owner ("ids/batch"); backends turn them into subjects and file names.
inline constexpr size_t kMaxKeyBytes = 256;

// Records are read and written whole under contention; what is larger belongs into a blob.
inline constexpr size_t kMaxDataBytes = size_t{64} << 10;

}  // namespace muster::sync
