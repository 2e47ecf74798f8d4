// SPDX-License-Identifier: Apache-2.0

// The small rules: threads before replicas, the standby pool, the fleet without statistics, and
// invalid input.

#include "muster/scaling/policy/sizing.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"
#include "muster/scaling/policy/deadline_policy.h"
#include "muster/scaling/policy/policy.h"

namespace muster::scaling::policy {

namespace {

// The textbook's sum, exact for few servers.
double BySum(int servers, double erlangs) {
  double sum = 0, term = 1;
  for (int k = 0; k < servers; ++k) {
    sum += term;
    term *= erlangs / (k + 1);
  }
  const double waiting = term * servers / (servers - erlangs);
  return waiting / (sum + waiting);
}

TEST(ErlangCTest, AgreesWithTheSumForFewServers) {
  for (int servers = 1; servers <= 40; ++servers) {
    for (double share : {0.1, 0.5, 0.9, 0.99}) {
      EXPECT_NEAR(ErlangC(servers, servers * share), BySum(servers, servers * share), 1e-12);
    }
  }
}

TEST(ErlangCTest, IsTheUtilisationForOneServer) { EXPECT_DOUBLE_EQ(ErlangC(1, 0.7), 0.7); }

TEST(ErlangCTest, StaysAProbabilityForTenThousandServers) {
  double last = 0;
  for (double erlangs : {1.0, 5000.0, 9000.0, 9900.0, 9990.0, 9999.9}) {
    const double waiting = ErlangC(10'000, erlangs);
    EXPECT_GE(waiting, last) << erlangs;
    EXPECT_LE(waiting, 1) << erlangs;
    last = waiting;
  }
  EXPECT_GT(last, 0.99);
}

TEST(ErlangCTest, IsCertainWhereTheLoadIsNotBelowTheServers) {
  EXPECT_EQ(ErlangC(10, 10), 1);
  EXPECT_EQ(ErlangC(10, 1e300), 1);
  EXPECT_EQ(ErlangC(10, 0), 0);
  EXPECT_EQ(ErlangC(10, std::nan("")), 0);
}

TEST(ServersForRateTest, IsTheLeastThatKeepsTheRisk) {
  const RateLoad load{10, absl::Seconds(2), absl::Seconds(3), 0.05};
  const auto late = [](int servers) {
    return ErlangC(servers, 20) * std::exp(-(servers - 20.0) * 1 / 2);
  };
  const int servers = ServersForRate(load, 1000);
  EXPECT_LE(late(servers), 0.05);
  EXPECT_GT(late(servers - 1), 0.05);
}

TEST(ServersForRateTest, AsksForMoreWhereNothingMayWait) {
  RateLoad load{10, absl::Seconds(2), absl::Seconds(2), 0.05};
  const int no_wait = ServersForRate(load, 1000);
  load.deadline = absl::Seconds(10);
  EXPECT_GT(no_wait, ServersForRate(load, 1000));
  EXPECT_GT(ServersForRate(load, 1000), 20);
}

TEST(ServersForRateTest, EndsAtTheMost) {
  EXPECT_EQ(ServersForRate({1e9, absl::Seconds(1), absl::Seconds(1), 0.01}, 10'000), 10'000);
  EXPECT_EQ(ServersForRate({0, absl::Seconds(1), absl::Seconds(1), 0.01}, 10), 0);
}

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
