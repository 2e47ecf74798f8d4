// SPDX-License-Identifier: Apache-2.0

// The times of shared access signatures and of stored access policies.
#pragma once

#include <optional>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace muster::queue_gateway::auth {

// Reads YYYY-MM-DD, YYYY-MM-DDThh:mm or YYYY-MM-DDThh:mm:ss with up to nine digits of a fraction;
// the last two end in Z or in an offset ±hh:mm. A date alone is its first moment in UTC. nullopt:
// it is no such time, or the calendar has no such day.
std::optional<absl::Time> ParseSasTime(absl::string_view text);

}  // namespace muster::queue_gateway::auth
