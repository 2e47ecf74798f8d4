// What whoever writes results and whoever reads them agree on (proto/muster/v1/item_result.proto).
#pragma once

#include <cstddef>

namespace muster::item {

// Results in one message of an output queue.
inline constexpr size_t kMaxTogether = 64;

}  // namespace muster::item
