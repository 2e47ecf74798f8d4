// The bounds of the blob seam, each with its reason.
#pragma once

#include <cstddef>

namespace muster::blob {

// Below what a file name or an object key may have, with room for a backend's own ending.
inline constexpr size_t kMaxNameBytes = 200;

// Blobs are held in memory whole, once per thread that works on one. It also bounds what a damaged
// or hostile file can make a reader allocate.
inline constexpr size_t kMaxBlobBytes = size_t{256} << 20;

}  // namespace muster::blob
