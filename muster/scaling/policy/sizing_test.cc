// The small rules: threads before replicas, the standby pool, what stays without statistics, and
// what is made of garbage.
#include <cmath>
#include <limits>

#include "gtest/gtest.h"
#include "muster/scaling/policy/metric_loss.h"
#include "muster/scaling/policy/sane_observation.h"
#include "muster/scaling/policy/standby.h"
#include "muster/scaling/policy/thread_sizing.h"

namespace muster::scaling::policy {
namespace {

class ThreadSizingTest : public ::testing::Test {
 protected:
  ThreadSizingTest() {
    fleet_.ready = 2;
    fleet_.tasks = 4;
    fleet_.max_tasks = 100;
    estimates_.cpu_share = 0.5;
  }

  int Tasks() const { return SizeThreads(fleet_, estimates_).tasks; }

  Fleet fleet_;
  Estimates estimates_;
};

TEST_F(ThreadSizingTest, AddsTasksUpTo85PercentOfTheProcessor) {
  EXPECT_EQ(Tasks(), 6);
  EXPECT_DOUBLE_EQ(SizeThreads(fleet_, estimates_).gain, 1.5);
  estimates_.cpu_share = 0.85;
  EXPECT_EQ(Tasks(), 4);
  estimates_.cpu_share = 0.99;
  EXPECT_EQ(Tasks(), 4);
}

TEST_F(ThreadSizingTest, DoublesAtMostAndStopsAtTheMaximum) {
  estimates_.cpu_share = 0.01;
  EXPECT_EQ(Tasks(), 8);
  fleet_.max_tasks = 5;
  EXPECT_EQ(Tasks(), 5);
}

TEST_F(ThreadSizingTest, AddsNoneWhereTheQueueThrottlesOrNothingIsKnown) {
  estimates_.throttled_share = 0.02;
  EXPECT_EQ(Tasks(), 4);
  estimates_.throttled_share = 0.01;
  EXPECT_EQ(Tasks(), 6);
  estimates_.cpu_share = 0;
  EXPECT_EQ(Tasks(), 4);
  estimates_.cpu_share = 0.5;
  fleet_.ready = 0;
  EXPECT_EQ(Tasks(), 4);
}

class StandbyTest : public ::testing::Test {
 protected:
  StandbyTest() {
    supply_.items_per_second = 10;
    supply_.cold_start = absl::Seconds(30);
    promise_.deadline = absl::Seconds(20);
    promise_.service_time = absl::Seconds(1);
  }

  Supply supply_;
  Promise promise_;
};

TEST_F(StandbyTest, ParksWhatALargeBatchNeedsWhereTheSlaIsShorterThanAColdStart) {
  EXPECT_EQ(StandbySize(1000, supply_, promise_), 6) << "1000 / (10 · (20 - 1 - 2)) = 5.9";
}

TEST_F(StandbyTest, ParksNobodyWhereAColdStartIsFastEnough) {
  supply_.cold_start = absl::Seconds(18);
  EXPECT_EQ(StandbySize(1000, supply_, promise_), 0);
}

TEST_F(StandbyTest, ParksNobodyWhereNobodyKnowsOrNobodyCouldHelp) {
  EXPECT_EQ(StandbySize(0, supply_, promise_), 0);
  EXPECT_EQ(StandbySize(std::nan(""), supply_, promise_), 0);
  promise_.service_time = absl::Seconds(20);
  EXPECT_EQ(StandbySize(1000, supply_, promise_), 0);
}

TEST(MetricLossTest, KeepsTheCurrentNumberTheFloorOrTheLargerOfBoth) {
  const Bounds bounds{1, 10};
  EXPECT_EQ((MetricLossRule{3, true, 0}.Keep(4, bounds)), 4);
  EXPECT_EQ((MetricLossRule{3, false, 2}.Keep(4, bounds)), 2);
  EXPECT_EQ((MetricLossRule{3, true, 6}.Keep(4, bounds)), 6);
  EXPECT_EQ((MetricLossRule{3, true, 60}.Keep(4, bounds)), 10);
  EXPECT_EQ((MetricLossRule{3, false, 0}.Keep(4, bounds)), 1);
}

TEST(SaneObservationTest, MakesZeroOfWhatIsNoNumber) {
  Observation raw;
  raw.now = absl::FromUnixSeconds(1000);
  raw.estimates.items_per_second = std::nan("");
  raw.estimates.cpu_share = -std::numeric_limits<double>::infinity();
  raw.estimates.service_time = -absl::InfiniteDuration();
  raw.estimates.cold_start = absl::InfiniteDuration();
  raw.fleet.ready = -5;
  raw.fleet.tasks = -1;
  raw.bounds = {-3, -7, -1};
  const Observation sane = Sane(raw);
  EXPECT_EQ(sane.estimates.items_per_second, 0);
  EXPECT_EQ(sane.estimates.cpu_share, 0);
  EXPECT_EQ(sane.estimates.service_time, absl::ZeroDuration());
  EXPECT_LT(sane.estimates.cold_start, absl::InfiniteDuration());
  EXPECT_EQ(sane.fleet.ready, 0);
  EXPECT_EQ(sane.fleet.tasks, 1);
  EXPECT_EQ(sane.bounds.min, 0);
  EXPECT_EQ(sane.bounds.max, 0);
}

TEST(SaneObservationTest, LetsTheMinimumBeatTheMaximum) {
  Observation raw;
  raw.bounds = {7, 3};
  EXPECT_EQ(Sane(raw).bounds.max, 7);
}

TEST(SaneObservationTest, ExpectsALateReplicaToBeLateByAsLongAgain) {
  Observation raw;
  raw.now = absl::FromUnixSeconds(1000);
  raw.fleet.starting = {raw.now - absl::Seconds(20), raw.now + absl::Seconds(5)};
  const Observation sane = Sane(raw);
  EXPECT_EQ(sane.fleet.starting[0], raw.now + absl::Seconds(5));
  EXPECT_EQ(sane.fleet.starting[1], raw.now + absl::Seconds(20));
}

}  // namespace
}  // namespace muster::scaling::policy
