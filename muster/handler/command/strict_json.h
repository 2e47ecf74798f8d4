// SPDX-License-Identifier: Apache-2.0

// Strict JSON, for what programs of others write.
#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace muster::handler::command {

// The value that all of `text` is. InvalidArgument when `text` is not JSON (RFC 8259, UTF-8
// throughout), an object has the same member twice, or brackets nest deeper than `max_depth`. Time
// and memory stay in proportion to `text`.
absl::StatusOr<nlohmann::json> ParseStrictJson(absl::string_view text, int max_depth);

}  // namespace muster::handler::command
