// SPDX-License-Identifier: Apache-2.0

// Message authentication codes, and the two kinds of base64 that carry them.
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace muster::queue_gateway::auth {

// HMAC-SHA256 (RFC 2104): 32 bytes.
std::string HmacSha256(absl::string_view key, absl::string_view text);

// Takes equally long, wherever the first different byte is. False at once when the lengths differ,
// which are no secret.
bool EqualInConstantTime(absl::string_view a, absl::string_view b);

// RFC 4648 §4: with padding, without white space, and with zeros in the bits that no byte uses.
// nullopt: `text` is something else.
std::optional<std::string> DecodeBase64(absl::string_view text);
// RFC 4648 §5, without padding, as JSON Web Signatures have it.
std::optional<std::string> DecodeBase64Url(absl::string_view text);

}  // namespace muster::queue_gateway::auth
