// JSON from programs that are not trusted to get it right.
#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace muster::handler::command {

// The value that all of `text` is. InvalidArgument when it is not JSON (RFC 8259, UTF-8
// throughout), an object has the same member twice, or brackets nest deeper than `max_depth`:
// time and memory stay in proportion to `text`.
absl::StatusOr<nlohmann::json> ParseStrictJson(absl::string_view text, int max_depth);

}  // namespace muster::handler::command
