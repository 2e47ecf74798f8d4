// SPDX-License-Identifier: Apache-2.0

// Bounds of the query parameters that several operations have.
#pragma once

#include <cstdint>

namespace muster::queue_gateway::operations {

inline constexpr char kCount[] = "numofmessages";
inline constexpr char kVisibility[] = "visibilitytimeout";
inline constexpr int64_t kMaxSeconds = int64_t{7} * 24 * 3600;  // of kVisibility
inline constexpr int64_t kDefaultTtlSeconds = kMaxSeconds;
inline constexpr int64_t kDefaultVisibilitySeconds = 30;
inline constexpr int64_t kMaxMessages = 32;  // in one get or peek

}  // namespace muster::queue_gateway::operations
