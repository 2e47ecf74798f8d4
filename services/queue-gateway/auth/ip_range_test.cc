// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/auth/ip_range.h"

#include <gtest/gtest.h>

namespace muster::queue_gateway::auth {
namespace {

bool Contains(absl::string_view range, absl::string_view address) {
  const std::optional<IpRange> parsed = ParseIpRange(range);
  const std::optional<IpAddress> peer = ParseIpAddress(address);
  return parsed.has_value() && peer.has_value() && parsed->Contains(*peer);
}

TEST(IpRangeTest, ContainsOneAddress) {
  EXPECT_TRUE(Contains("168.1.5.65", "168.1.5.65"));
  EXPECT_FALSE(Contains("168.1.5.65", "168.1.5.66"));
  EXPECT_FALSE(Contains("168.1.5.65", "168.1.5.64"));
}

TEST(IpRangeTest, ContainsBothItsBounds) {
  EXPECT_FALSE(Contains("168.1.5.60-168.1.5.70", "168.1.5.59"));
  EXPECT_TRUE(Contains("168.1.5.60-168.1.5.70", "168.1.5.60"));
  EXPECT_TRUE(Contains("168.1.5.60-168.1.5.70", "168.1.5.70"));
  EXPECT_FALSE(Contains("168.1.5.60-168.1.5.70", "168.1.5.71"));
  EXPECT_TRUE(Contains("9.255.255.255-10.0.0.1", "10.0.0.0")) << "compared as numbers, not as text";
}

TEST(IpRangeTest, KnowsIpv6AndAddressesMappedIntoIt) {
  EXPECT_TRUE(Contains("2001:db8::1-2001:db8::ff", "2001:db8::80"));
  EXPECT_FALSE(Contains("2001:db8::1-2001:db8::ff", "2001:db8::100"));
  EXPECT_TRUE(Contains("168.1.5.65", "::ffff:168.1.5.65"));
}

TEST(IpRangeTest, RefusesWhatIsNoRange) {
  for (const char* const text :
       {"", "-", "168.1.5", "168.1.5.65-", "-168.1.5.65", "168.1.5.256", "168.1.5.70-168.1.5.60",
        "168.1.5.60-168.1.5.61-168.1.5.62", "1.2.3.4-2001:db8::1", " 168.1.5.65", "168.1.5.0/24",
        "localhost"}) {
    EXPECT_FALSE(ParseIpRange(text).has_value()) << text;
  }
  EXPECT_FALSE(ParseIpAddress(absl::string_view("1.2.3.4\0x", 9)).has_value());
}

}  // namespace
}  // namespace muster::queue_gateway::auth
