// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/auth/request.h"

#include "absl/strings/str_cat.h"

namespace muster::queue_gateway::auth {

std::optional<std::string> SignedRequest::Header(absl::string_view name) const {
  std::optional<std::string> value;
  for (const auto& [header, text] : headers) {
    if (header != name) continue;
    if (value.has_value()) {
      absl::StrAppend(&*value, ",", text);
    } else {
      value = text;
    }
  }
  return value;
}

}  // namespace muster::queue_gateway::auth
