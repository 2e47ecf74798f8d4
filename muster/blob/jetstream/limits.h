// The bounds of the blob store on JetStream, each with its reason.
#pragma once

#include <cstddef>

#include "absl/time/time.h"

namespace muster::blob::jetstream {

// What NATS's own tools take, and well below the payload that servers allow (1 MiB).
inline constexpr size_t kChunkBytes = size_t{128} << 10;
// The subject and headers of a chunk or its answer come on top.
inline constexpr size_t kChunkOverheadBytes = 1024;

// Chunks that are on their way to the server without its acknowledgement: enough that the wait for
// it is short beside the transfer, few enough that they fit into every buffer on the way.
inline constexpr size_t kWindowChunks = 16;

// Each try more means that another put of the same blob came between; so somebody makes progress.
inline constexpr int kMaxTries = 100;

// Chunks without metadata are taken for those of a put that died when they are older than this. A
// put of the largest blob takes minutes, and clocks of machines differ by less than that.
inline constexpr absl::Duration kOrphanAge = absl::Hours(24);

}  // namespace muster::blob::jetstream
