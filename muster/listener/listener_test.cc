// SPDX-License-Identifier: Apache-2.0
#include "muster/listener/listener.h"

#include "gtest/gtest.h"

namespace muster::listener {
namespace {

TEST(WorkRuleTest, GrowsTheTasksWithTheDepth) {
  const WorkRule rule = DefaultWorkRule();
  EXPECT_EQ(rule(0), 10);
  EXPECT_EQ(rule(99), 10);
  EXPECT_EQ(rule(100), 50);
  EXPECT_EQ(rule(999), 50);
  EXPECT_EQ(rule(1000), 100);
  EXPECT_EQ(rule(int64_t{1} << 60), 100);
}

TEST(WorkRuleTest, FallsBackToOneTaskWhenTheDepthIsUnknown) { EXPECT_EQ(DefaultWorkRule()(-1), 1); }

TEST(WorkRuleTest, ReadsARuleThatIsManagedOutside) {
  const auto rule = ParseWorkRule("0:1, 10:2, 5000:8");
  ASSERT_TRUE(rule.ok()) << rule.status();
  EXPECT_EQ((*rule)(9), 1);
  EXPECT_EQ((*rule)(10), 2);
  EXPECT_EQ((*rule)(5000), 8);
}

TEST(WorkRuleTest, RefusesARuleThatIsWrongAndNamesTheStep) {
  for (const char* wrong : {"", "5", "1:1", "0:0", "0:1,0:2", "0:1,5:x", "0:1:2", "0:99999999"}) {
    EXPECT_EQ(ParseWorkRule(wrong).status().code(), absl::StatusCode::kInvalidArgument) << wrong;
  }
  EXPECT_NE(ParseWorkRule("0:1,5:x").status().message().find("5:x"), absl::string_view::npos);
}

}  // namespace
}  // namespace muster::listener
