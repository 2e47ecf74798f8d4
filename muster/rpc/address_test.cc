// SPDX-License-Identifier: Apache-2.0
#include "muster/rpc/address.h"

#include <string>

#include "gtest/gtest.h"

namespace muster::rpc {
namespace {

bool IsLoopback(const std::string& text) {
  const absl::StatusOr<Address> address = ParseAddress(text);
  EXPECT_TRUE(address.ok()) << address.status();
  return address.ok() && address->IsLoopback();
}

std::string WhyNoAddress(const std::string& text) {
  const absl::StatusOr<Address> address = ParseAddress(text);
  EXPECT_EQ(address.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(address.status().message());
}

TEST(Address, KeepsHostAndPort) {
  for (const std::string text : {"127.0.0.1:7700", "[::1]:0", "mesh.example.org:65535"}) {
    const absl::StatusOr<Address> address = ParseAddress(text);
    ASSERT_TRUE(address.ok()) << address.status();
    EXPECT_EQ(address->ToString(), text);
  }
}

TEST(Address, KnowsWhatOnlyThisMachineReaches) {
  EXPECT_TRUE(IsLoopback("localhost:1"));
  EXPECT_TRUE(IsLoopback("127.0.0.1:1"));
  EXPECT_TRUE(IsLoopback("[::1]:1"));
}

TEST(Address, TakesNothingElseForLoopback) {
  EXPECT_FALSE(IsLoopback("0.0.0.0:1"));
  EXPECT_FALSE(IsLoopback("[::]:1"));
  EXPECT_FALSE(IsLoopback("10.127.0.1:1"));
  EXPECT_FALSE(IsLoopback("127.0.0.2:1"));
  EXPECT_FALSE(IsLoopback("localhost.example.org:1"));
  EXPECT_FALSE(IsLoopback("127.0.0.1.example.org:1"));
}

TEST(Address, SaysWhatIsWrongWithOne) {
  EXPECT_NE(WhyNoAddress("localhost").find("has no port"), std::string::npos);
  EXPECT_NE(WhyNoAddress(":7700").find("has no host"), std::string::npos);
  EXPECT_NE(WhyNoAddress("localhost:http").find("no port from 0 to 65535"), std::string::npos);
  EXPECT_NE(WhyNoAddress("localhost:70000").find("no port from 0 to 65535"), std::string::npos);
  EXPECT_NE(WhyNoAddress("localhost:-1").find("no port from 0 to 65535"), std::string::npos);
  EXPECT_NE(WhyNoAddress("::1:7700").find("without brackets"), std::string::npos);
  EXPECT_NE(WhyNoAddress("http://127.0.0.1:7700").find("has a scheme: leave http:// out"),
            std::string::npos);
  EXPECT_NE(WhyNoAddress("grpc://host").find("leave grpc:// out"), std::string::npos);
  EXPECT_NE(WhyNoAddress("[localhost]:7700").find("no IPv6 address in brackets"),
            std::string::npos);
}

}  // namespace
}  // namespace muster::rpc
