// SPDX-License-Identifier: Apache-2.0

// Sizes and durations as people write them in job files and flags: "256KiB", "1.5h", "7d".
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace muster::base {

// A whole number of bytes: "512", "64B", "256KiB", "1.5GiB", "10MB". Units: B, KiB … TiB (1024),
// kB or KB … TB (1000). InvalidArgument for signs, spaces, unknown units, fractions of a byte;
// OutOfRange above int64.
absl::StatusOr<int64_t> ParseBytes(absl::string_view text);

// The largest unit of 1024 that shows `bytes` exactly, so that ParseBytes reads it back: "256KiB",
// "1000B".
std::string BytesToString(int64_t bytes);

// "30s", "5m", "7d", "1h30m", "250ms", "1.5h", "0". Units: d, h, m, s, ms, us, ns, from large to
// small, each once. InvalidArgument for signs, spaces, a missing or unknown unit, fractions of a
// nanosecond; OutOfRange above 292 years.
absl::StatusOr<absl::Duration> ParseDuration(absl::string_view text);

// "7d", "1h30m", "250ms", "0s", "-5s", "inf"; ParseDuration reads back what is finite and not
// negative. Parts of a nanosecond are dropped.
std::string DurationToString(absl::Duration duration);

}  // namespace muster::base
