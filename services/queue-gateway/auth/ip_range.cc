// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/auth/ip_range.h"

#include <arpa/inet.h>

#include <algorithm>
#include <string>

namespace muster::queue_gateway::auth {

namespace {

constexpr size_t kMappedPrefixBytes = 12;

bool IsIpv4(const IpAddress& address) {
  constexpr IpAddress kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0};
  return std::equal(kMapped.begin(), kMapped.begin() + kMappedPrefixBytes, address.begin());
}

}  // namespace

std::optional<IpAddress> ParseIpAddress(absl::string_view text) {
  const std::string address(text);
  if (address.find('\0') != std::string::npos) return std::nullopt;
  IpAddress bytes = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0};
  if (inet_pton(AF_INET, address.c_str(), bytes.data() + kMappedPrefixBytes) == 1) return bytes;
  if (inet_pton(AF_INET6, address.c_str(), bytes.data()) == 1) return bytes;
  return std::nullopt;
}

std::optional<IpRange> ParseIpRange(absl::string_view text) {
  const size_t dash = text.find('-');
  const std::optional<IpAddress> first = ParseIpAddress(text.substr(0, dash));
  if (!first.has_value()) return std::nullopt;
  if (dash == absl::string_view::npos) return IpRange{*first, *first};
  const std::optional<IpAddress> last = ParseIpAddress(text.substr(dash + 1));
  if (!last.has_value() || *last < *first || IsIpv4(*first) != IsIpv4(*last)) return std::nullopt;
  return IpRange{*first, *last};
}

}  // namespace muster::queue_gateway::auth
