// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/http/message.h"

#include "absl/strings/match.h"

namespace muster::queue_gateway::http {

std::optional<absl::string_view> HeaderOf(const Headers& headers, absl::string_view name) {
  for (const auto& [key, value] : headers) {
    if (absl::EqualsIgnoreCase(key, name)) return value;
  }
  return std::nullopt;
}

}  // namespace muster::queue_gateway::http
