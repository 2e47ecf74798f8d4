// SPDX-License-Identifier: Apache-2.0
#include "muster/scaling/policy/estimators.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"

namespace muster::scaling::policy {

namespace {

TEST(ServiceRateTest, KnowsNothingBeforeTheFirstSample) {
  EXPECT_EQ(ServiceRate().LowerBound(1), 0);
}

TEST(ServiceRateTest, Takes85PercentOfTheMeanOfFewSamples) {
  ServiceRate rate;
  rate.See(4, 30);
  rate.See(4, 50);
  EXPECT_DOUBLE_EQ(rate.LowerBound(4), 34);
}

TEST(ServiceRateTest, TakesTheQuarterPercentileOfMany) {
  ServiceRate rate;
  for (int i = 1; i <= 41; ++i) rate.See(1, i);
  EXPECT_DOUBLE_EQ(rate.LowerBound(1), 11);
}

TEST(ServiceRateTest, ForgetsWhatIsLongAgo) {
  ServiceRate rate;
  for (int i = 0; i < 64; ++i) rate.See(1, 10);
  for (int i = 0; i < 64; ++i) rate.See(1, 20);
  EXPECT_DOUBLE_EQ(rate.LowerBound(1), 20);
}

TEST(ServiceRateTest, RefusesGarbageAndIdleness) {
  ServiceRate rate;
  EXPECT_FALSE(rate.See(1, -1));
  EXPECT_FALSE(rate.See(1, 0));
  EXPECT_FALSE(rate.See(1, std::nan("")));
  EXPECT_FALSE(rate.See(1, std::numeric_limits<double>::infinity()));
  EXPECT_FALSE(rate.See(0, 10));
  EXPECT_FALSE(rate.See(-3, 10));
  EXPECT_EQ(rate.LowerBound(1), 0);
  EXPECT_EQ(rate.LowerBound(-1), 0);
}

TEST(ServiceRateTest, InfersANumberOfTasksThatItNeverSaw) {
  ServiceRate rate;
  for (int i = 0; i < 8; ++i) rate.See(4, 40);
  EXPECT_DOUBLE_EQ(rate.LowerBound(8), 40) << "more tasks do at least as much";
  EXPECT_DOUBLE_EQ(rate.LowerBound(1), 10) << "fewer tasks do at least as much each";
  for (int i = 0; i < 8; ++i) rate.See(16, 200);
  EXPECT_DOUBLE_EQ(rate.LowerBound(8), 100);
}

TEST(ServiceRateTest, RemembersABoundedNumberOfTaskCounts) {
  ServiceRate rate;
  for (int tasks = 1; tasks <= 1000; ++tasks) rate.See(tasks, tasks);
  EXPECT_GT(rate.LowerBound(1000), 0);
  EXPECT_LT(rate.LowerBound(1), 1) << "it is inferred, for the sample itself is forgotten";
}

constexpr absl::Time kNow = absl::UnixEpoch();

TEST(ColdStartTest, BelievesThePriorUntilItHasEnoughSamples) {
  ColdStart start(absl::Seconds(30));
  EXPECT_EQ(start.P95(), absl::Seconds(30));
  for (int i = 0; i < 4; ++i) start.See(absl::Seconds(5), kNow);
  EXPECT_EQ(start.P95(), absl::Seconds(30));
  start.See(absl::Seconds(6), kNow);
  EXPECT_EQ(start.P95(), absl::Seconds(6));
}

TEST(ColdStartTest, BelievesASlowFirstStartAtOnce) {
  ColdStart start(absl::Seconds(30));
  start.See(absl::Seconds(90), kNow);
  EXPECT_EQ(start.P95(), absl::Seconds(90));
}

TEST(ColdStartTest, TakesThe95thPercentile) {
  ColdStart start(absl::ZeroDuration());
  for (int i = 1; i <= 100; ++i) start.See(absl::Seconds(i), kNow);
  EXPECT_EQ(start.P95(), absl::Seconds(95));
}

TEST(ColdStartTest, ForgetsWhatIsLongAgo) {
  ColdStart start(absl::ZeroDuration());
  for (int i = 0; i < 100; ++i) start.See(absl::Seconds(60), kNow);
  for (int i = 0; i < 100; ++i) start.See(absl::Seconds(6), kNow);
  EXPECT_EQ(start.P95(), absl::Seconds(6));
}

TEST(ColdStartTest, ForgetsASlowStartAfterAWeekWithoutAnother) {
  ColdStart start(absl::Seconds(5));
  start.See(absl::Seconds(60), kNow);
  start.See(absl::Seconds(9), kNow + absl::Hours(24));
  start.ForgetOld(kNow + kStartLifetime);
  EXPECT_EQ(start.P95(), absl::Seconds(60));
  start.ForgetOld(kNow + kStartLifetime + absl::Seconds(1));
  EXPECT_EQ(start.P95(), absl::Seconds(9));
  start.ForgetOld(kNow + kStartLifetime + absl::Hours(25));
  EXPECT_EQ(start.P95(), absl::Seconds(5)) << "as the operator says";
}

TEST(ColdStartTest, RefusesGarbage) {
  ColdStart start(absl::Seconds(30));
  EXPECT_FALSE(start.See(-absl::Seconds(1), kNow));
  EXPECT_FALSE(start.See(absl::InfiniteDuration(), kNow));
  EXPECT_FALSE(start.See(absl::Hours(25), kNow));
  EXPECT_EQ(start.P95(), absl::Seconds(30));
}

}  // namespace

}  // namespace muster::scaling::policy
