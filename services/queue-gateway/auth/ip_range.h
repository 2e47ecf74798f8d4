// SPDX-License-Identifier: Apache-2.0

// IpRange: the addresses that a shared access signature may be used from.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"

namespace muster::queue_gateway::auth {

// 16 bytes in network order; an IPv4 address is mapped into IPv6 (RFC 4291 §2.5.5.2).
using IpAddress = std::array<uint8_t, 16>;

// "192.0.2.1", "2001:db8::1", "::ffff:192.0.2.1". nullopt: it is none.
std::optional<IpAddress> ParseIpAddress(absl::string_view text);

struct IpRange {
  IpAddress first;
  IpAddress last;  // included

  bool Contains(const IpAddress& address) const { return first <= address && address <= last; }
};

// "192.0.2.1", or "192.0.2.1-192.0.2.9" with the lower one first and both of one family. nullopt:
// it is neither.
std::optional<IpRange> ParseIpRange(absl::string_view text);

}  // namespace muster::queue_gateway::auth
