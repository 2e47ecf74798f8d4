#include "muster/scaling/policy/cold_start.h"

#include "gtest/gtest.h"

namespace muster::scaling::policy {
namespace {

TEST(ColdStartTest, BelievesThePriorUntilItHasEnoughSamples) {
  ColdStart start(absl::Seconds(30));
  EXPECT_EQ(start.P95(), absl::Seconds(30));
  for (int i = 0; i < 4; ++i) start.See(absl::Seconds(5));
  EXPECT_EQ(start.P95(), absl::Seconds(30));
  start.See(absl::Seconds(6));
  EXPECT_EQ(start.P95(), absl::Seconds(6));
}

TEST(ColdStartTest, BelievesASlowFirstStartAtOnce) {
  ColdStart start(absl::Seconds(30));
  start.See(absl::Seconds(90));
  EXPECT_EQ(start.P95(), absl::Seconds(90));
}

TEST(ColdStartTest, TakesThe95thPercentile) {
  ColdStart start(absl::ZeroDuration());
  for (int i = 1; i <= 100; ++i) start.See(absl::Seconds(i));
  EXPECT_EQ(start.P95(), absl::Seconds(95));
}

TEST(ColdStartTest, ForgetsWhatIsLongAgo) {
  ColdStart start(absl::ZeroDuration());
  for (int i = 0; i < 100; ++i) start.See(absl::Seconds(60));
  for (int i = 0; i < 100; ++i) start.See(absl::Seconds(6));
  EXPECT_EQ(start.P95(), absl::Seconds(6));
}

TEST(ColdStartTest, RefusesGarbage) {
  ColdStart start(absl::Seconds(30));
  EXPECT_FALSE(start.See(-absl::Seconds(1)));
  EXPECT_FALSE(start.See(absl::InfiniteDuration()));
  EXPECT_FALSE(start.See(absl::Hours(25)));
  EXPECT_EQ(start.P95(), absl::Seconds(30));
}

}  // namespace
}  // namespace muster::scaling::policy
