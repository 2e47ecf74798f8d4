// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/protocol/version.h"

#include "gtest/gtest.h"

namespace muster::queue_gateway::protocol {
namespace {

TEST(VersionTest, IsAnyDay) {
  for (const char* version : {"2008-10-27", "2018-03-29", "2026-10-06", "2099-12-31"}) {
    EXPECT_TRUE(IsVersion(version)) << version;
  }
  for (const char* version : {"", "latest", "2026-2-6", "2026-02-30", "2026-10-06 ", " 2026-10-06",
                              "2026-10-06x", "20261006", "12026-10-06", "-026-10-06"}) {
    EXPECT_FALSE(IsVersion(version)) << version;
  }
}

}  // namespace
}  // namespace muster::queue_gateway::protocol
