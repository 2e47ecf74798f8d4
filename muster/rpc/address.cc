// SPDX-License-Identifier: Apache-2.0
#include "muster/rpc/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace muster::rpc {
namespace {

bool IsV6(const std::string& host) {
  in6_addr address;
  return inet_pton(AF_INET6, host.c_str(), &address) == 1;
}

absl::Status Malformed(absl::string_view text, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("the address '", text, "' ", why,
                                                 "; it must be HOST:PORT such as 127.0.0.1:7700 or "
                                                 "[::1]:7700"));
}

}  // namespace

std::string Address::ToString() const {
  return IsV6(host) ? absl::StrCat("[", host, "]:", port) : absl::StrCat(host, ":", port);
}

bool Address::IsLoopback() const {
  return host == "localhost" || host == "127.0.0.1" || host == "::1";
}

absl::StatusOr<Address> ParseAddress(absl::string_view text) {
  if (const size_t scheme = text.find("://"); scheme != absl::string_view::npos) {
    return Malformed(text,
                     absl::StrCat("has a scheme: leave ", text.substr(0, scheme + 3), " out"));
  }
  const size_t colon = text.rfind(':');
  if (colon == absl::string_view::npos) return Malformed(text, "has no port");
  Address address;
  absl::string_view host = text.substr(0, colon);
  const bool in_brackets = absl::StartsWith(host, "[") && absl::EndsWith(host, "]");
  if (in_brackets) host = host.substr(1, host.size() - 2);
  address.host = std::string(host);
  if (in_brackets && !IsV6(address.host)) return Malformed(text, "has no IPv6 address in brackets");
  if (!in_brackets && absl::StrContains(host, ':')) {
    return Malformed(text, "has an IPv6 address without brackets");
  }
  if (host.empty()) return Malformed(text, "has no host");
  if (!absl::SimpleAtoi(text.substr(colon + 1), &address.port) || address.port < 0 ||
      address.port > kMaxPort) {
    return Malformed(text, absl::StrCat("has no port from 0 to ", kMaxPort));
  }
  return address;
}

}  // namespace muster::rpc
