#include "muster/base/instance_id.h"

#include <unistd.h>

#include <set>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::base {
namespace {

TEST(InstanceIdTest, StartsWithTheRoleAndNamesTheProcess) {
  EXPECT_THAT(MakeInstanceId("Scaling Agent"),
              ::testing::MatchesRegex("scaling-agent-[a-z0-9-]+-" + std::to_string(getpid()) +
                                      "-[0-9a-f]+"));
}

TEST(InstanceIdTest, IsNeverTheSameTwice) {
  std::set<std::string> ids;
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(ids.insert(MakeInstanceId("processor")).second);
}

}  // namespace
}  // namespace muster::base
