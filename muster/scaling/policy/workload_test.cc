// SPDX-License-Identifier: Apache-2.0

// Estimates from readings: arrivals, work that is probably done, real speed.
#include "muster/scaling/policy/workload.h"

#include <limits>

#include "gtest/gtest.h"

namespace muster::scaling::policy {
namespace {

absl::Time LearnedSecond(double seconds) {
  return absl::FromUnixSeconds(1'000'000) + absl::Seconds(seconds);
}

TEST(RecentArrivalsTest, CountsTheLastMinute) {
  RecentArrivals arrivals;
  EXPECT_EQ(arrivals.PerSecond(), 0);
  for (int second = 0; second <= 600; ++second) {
    arrivals.See(LearnedSecond(second), second < 300 ? second * 10 : 3000 + (second - 300) * 20);
  }
  EXPECT_NEAR(arrivals.PerSecond(), 20, 1e-9);
}

TEST(RecentArrivalsTest, BearsManyLooksInASecond) {
  RecentArrivals arrivals;
  for (int look = 0; look <= 100'000; ++look) arrivals.See(LearnedSecond(look * 1e-3), look);
  EXPECT_NEAR(arrivals.PerSecond(), 1000, 20);
}

TEST(RecentArrivalsTest, KnowsTheNinetyNinthPercentileOfItsBatches) {
  RecentArrivals arrivals;
  EXPECT_EQ(arrivals.LargeBatch(), 0);
  for (int items = 1; items <= 200; ++items) arrivals.SeeBatch(LearnedSecond(items), items);
  arrivals.See(LearnedSecond(300), 0);
  EXPECT_EQ(arrivals.LargeBatch(), 198);
  arrivals.SeeBatch(LearnedSecond(300), -5);
  EXPECT_EQ(arrivals.LargeBatch(), 198);
}

// A batch of 305 items was taken for eight, the largest of which had 65.
TEST(RecentArrivalsTest, TakesThePiecesOfABatchForOneBatch) {
  RecentArrivals arrivals;
  const auto put = [&arrivals](double second) {
    for (const int items : {16, 32, 64, 16, 16, 32, 64, 65}) {
      arrivals.SeeBatch(LearnedSecond(second += 0.1), items);
    }
  };
  put(0);
  EXPECT_EQ(arrivals.LargeBatch(), 305);
  arrivals.See(LearnedSecond(60), 305);
  for (const double second : {120, 240}) put(second);
  EXPECT_EQ(arrivals.LargeBatch(), 305);
  arrivals.SeeBatch(LearnedSecond(360), 16);
  EXPECT_EQ(arrivals.LargeBatch(), 305) << "the first piece of the next one tells nothing";
}

TEST(RecentArrivalsTest, TakesASecondOfAStreamForABatchAndNotAllOfIt) {
  RecentArrivals arrivals;
  for (int item = 0; item < 1000; ++item) arrivals.SeeBatch(LearnedSecond(item * 0.125), 1);
  EXPECT_EQ(arrivals.LargeBatch(), 8);
}

TEST(RecentArrivalsTest, ABatchFromTheFutureTakesInNoOther) {
  RecentArrivals arrivals;
  for (const absl::Time at : {LearnedSecond(1e6), absl::InfiniteFuture()}) {
    arrivals.SeeBatch(at, 1);
    for (int second = 0; second < 600; second += 60) arrivals.SeeBatch(LearnedSecond(second), 7);
    EXPECT_EQ(arrivals.LargeBatch(), 7);
  }
}

TEST(RecentArrivalsTest, BearsMoreItemsThanThereCanBe) {
  RecentArrivals arrivals;
  for (int i = 0; i < 3; ++i) {
    arrivals.SeeBatch(LearnedSecond(0), std::numeric_limits<int64_t>::max());
  }
  EXPECT_EQ(arrivals.LargeBatch(), static_cast<double>(kMaxItems));
}

TEST(CompletionEstimateTest, AddsUpWhatWasDoneSinceAnInstant) {
  CompletionEstimate estimate;
  estimate.See(LearnedSecond(0), 10);
  estimate.See(LearnedSecond(10), 20);
  estimate.See(LearnedSecond(20), 0);
  estimate.See(LearnedSecond(30), 50);
  EXPECT_NEAR(estimate.DoneSince(LearnedSecond(5)), 250, 1e-9);
  EXPECT_NEAR(estimate.DoneSince(LearnedSecond(15)), 100, 1e-9);
  EXPECT_EQ(estimate.DoneSince(LearnedSecond(30)), 0);
  EXPECT_EQ(estimate.DoneSince(absl::InfiniteFuture()), 0);
}

TEST(CompletionEstimateTest, LooksBackForMinutesOnly) {
  CompletionEstimate estimate;
  for (int second = 0; second < 10'000; ++second) estimate.See(LearnedSecond(second), 1);
  EXPECT_NEAR(estimate.DoneSince(absl::InfinitePast()), 300, 1);
}

class ObservedSpeedTest : public ::testing::Test {
 protected:
  void See(double now, int ready, double read_at, int64_t waiting, int64_t out) {
    Fleet fleet;
    fleet.ready = ready;
    QueueReading reading;
    reading.at = LearnedSecond(read_at);
    reading.ready = waiting;
    reading.total_out = out;
    speed_.See(LearnedSecond(now), fleet, {reading});
  }

  ObservedSpeed speed_;
};

TEST_F(ObservedSpeedTest, IsWhatReplicasDoWhileWorkWaits) {
  for (int second = 0; second <= 10; ++second) See(second, 4, second, 10'000, 120 * second);
  EXPECT_NEAR(speed_.ItemsPerSecond(), 30, 1e-9);
}

TEST_F(ObservedSpeedTest, IsTheSameFromOldStatistics) {
  int out = 0;
  for (int second = 0; second <= 90; ++second) {
    See(second, second < 40 ? 2 : 6, std::max(0, second - 30), 10'000, out);
    if (second >= 30) out += second - 30 < 40 ? 60 : 180;
  }
  EXPECT_NEAR(speed_.ItemsPerSecond(), 30, 0.5);
}

TEST_F(ObservedSpeedTest, LearnsNothingWhereReplicasMayHaveFoundNothingToDo) {
  for (int second = 0; second <= 100; ++second) See(second, 4, second, 10, 20 * second);
  EXPECT_EQ(speed_.ItemsPerSecond(), 0);
}

TEST_F(ObservedSpeedTest, TellsNothingFromAFewItems) {
  See(0, 1, 0, 1000, 0);
  See(1, 1, 1, 1000, 50);
  EXPECT_EQ(speed_.ItemsPerSecond(), 0);
}

TEST_F(ObservedSpeedTest, FollowsWorkThatBecomesSlower) {
  int64_t out = 0;
  for (int second = 0; second <= 200; ++second) See(second, 1, second, 1000, out += 100);
  for (int second = 201; second <= 1000; ++second) See(second, 1, second, 1000, out += 20);
  EXPECT_NEAR(speed_.ItemsPerSecond(), 20, 1);
}

TEST_F(ObservedSpeedTest, BearsTotalsThatStartAnew) {
  See(0, 1, 0, 1000, std::numeric_limits<int64_t>::max());
  See(1, 1, 1, 1000, 0);
  EXPECT_EQ(speed_.ItemsPerSecond(), 0);
}

}  // namespace
}  // namespace muster::scaling::policy
