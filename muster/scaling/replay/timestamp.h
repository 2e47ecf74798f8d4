// SPDX-License-Identifier: Apache-2.0

// Parses the timestamps of a trace.
#pragma once

#include <optional>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace muster::scaling::replay {

// ISO 8601, with T or a space between date and time, a fraction of a second of any length (digits
// beyond nanoseconds are dropped) and a zone, all of them optional: "2023-11-16 18:17:03.9799600",
// "1998-06-30T00:01Z", "2024-02-29T10:00:00+01:00", "2024-02-29". Without a zone it is UTC. Or
// seconds since 1970 or since any other start: "0", "1700000000.25". nullopt: any other text, or a
// date that does not exist. Stricter than absl::ParseTime, which also takes "2024-2-9" and blanks
// in between, and drops the fraction of a leap second.
std::optional<absl::Time> ParseTimestamp(absl::string_view text);

}  // namespace muster::scaling::replay
