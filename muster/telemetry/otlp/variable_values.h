// SPDX-License-Identifier: Apache-2.0

// How the values of OpenTelemetry's variables are read. A wrong value is InvalidArgument; the
// message names the variable, and says what to write instead.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace muster::telemetry {

using NamesAndValues = std::vector<std::pair<std::string, std::string>>;

// The most of TimeOf.
inline constexpr absl::Duration kMaxCallTimeout = absl::Hours(1);

// The error for a value that is wrong; `instead`: what to write.
absl::Status Wrong(absl::string_view name, absl::string_view value, absl::string_view instead);

// NAME=VALUE,NAME=VALUE, with %XX for a byte of a value. Errors do not repeat the text.
absl::StatusOr<NamesAndValues> PairsOf(absl::string_view variable, absl::string_view text);

// "http://HOST:PORT" or "https://HOST:PORT".
absl::StatusOr<std::string> EndpointOf(absl::string_view variable, absl::string_view text);

// Milliseconds, as the specification has it, or with a unit; above zero.
absl::StatusOr<absl::Duration> TimeOf(absl::string_view variable, absl::string_view text);

// 1 to `most`.
absl::StatusOr<size_t> CountOf(absl::string_view variable, absl::string_view text, size_t most);

absl::StatusOr<bool> BoolOf(absl::string_view variable, absl::string_view text);

}  // namespace muster::telemetry
