// SPDX-License-Identifier: Apache-2.0

// The target of a request, taken apart: its path and its query parameters.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace muster::queue_gateway::protocol {

// `text` with each %XX replaced by its byte. nullopt: a % without two hexadecimal digits.
std::optional<std::string> PercentDecode(absl::string_view text);

struct Target {
  std::string host;                // of "http://host/path", with the port; else ""
  std::string raw_path;            // as sent: still encoded, without the query
  std::vector<std::string> parts;  // of the path, decoded; empty ones at its end are left out
  // Decoded ("+" is a space), in order; names as sent.
  std::vector<std::pair<std::string, std::string>> query;

  // The first value of the parameter, whose name counts in any case; nullopt: it is not there.
  std::optional<absl::string_view> Parameter(absl::string_view name) const;
};

// Of "/path?query", or "http://host/path?query" as clients of a proxy send it. nullopt: it is
// neither, or an escape is wrong.
std::optional<Target> ParseTarget(absl::string_view target);

}  // namespace muster::queue_gateway::protocol
