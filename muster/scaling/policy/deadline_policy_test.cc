// SPDX-License-Identifier: Apache-2.0
#include "muster/scaling/policy/deadline_policy.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>

#include "gtest/gtest.h"
#include "muster/scaling/policy/explain.h"
#include "tests/fakes/scaling/policy/target_fixture.h"

namespace muster::scaling::policy {
namespace {

class DeadlinePolicyTest : public ::testing::Test {
 protected:
  TargetFixture target_;
};

TEST_F(DeadlinePolicyTest, WantsNothingWhereNothingIs) {
  target_.Read(0);
  const Decision decision = target_.Decide();
  EXPECT_EQ(decision.replicas, 0);
  EXPECT_EQ(decision.binding, Binding::kNothing);
  EXPECT_TRUE(decision.feasibility.feasible);
}

TEST_F(DeadlinePolicyTest, TellsWhatItForecastsOnceItHasSeenTwoWeeks) {
  constexpr double kDay = 24 * 3600;
  target_.options.forecast = true;
  int64_t done = 0;
  for (double at = 0; at < 15 * kDay; at += 300) {
    target_.Now(at);
    target_.Announce(at, 3000);
    target_.Read(0, done += 3000);
    target_.Decide();
    if (at == 13 * kDay) EXPECT_EQ(target_.policy().forecast(), std::nullopt);
  }
  ASSERT_TRUE(target_.policy().forecast().has_value());
  EXPECT_NEAR(*target_.policy().forecast(), 10, 1);
}

// The example of docs/scaling.md, number by number.
TEST_F(DeadlinePolicyTest, DecidesAsTheExampleByHand) {
  target_.Ready(1);
  target_.Read(0);
  target_.Announce(0, 30'000);
  target_.Read(30'000);
  Decision decision = target_.Decide();
  EXPECT_EQ(decision.replicas, 3);
  EXPECT_EQ(decision.binding, Binding::kDeadline);
  EXPECT_EQ(decision.deadline, target_.At(300));
  EXPECT_EQ(decision.feasibility.needs, 3);
  EXPECT_EQ(decision.feasibility.finish, target_.At(270));
  EXPECT_EQ(Explain(decision, target_.observation),
            "Grow from 1 to 3 replicas. The queued work needs 3 by 06:05.");

  target_.Now(60);
  target_.Ready(3);
  target_.Announce(60, 30'000);
  target_.Read(55'200, 4'800);
  decision = target_.Decide();
  EXPECT_EQ(decision.replicas, 5);
  EXPECT_EQ(decision.deadline, target_.At(360));
  EXPECT_TRUE(decision.feasibility.feasible);

  target_.observation.bounds.max = 4;
  decision = target_.Decide();
  EXPECT_EQ(decision.replicas, 4);
  EXPECT_EQ(decision.binding, Binding::kMax);
  EXPECT_EQ(decision.feasibility.needs, 5);
  EXPECT_EQ(Explain(decision, target_.observation),
            "Grow from 3 to 4 replicas. Needs 5, capped at 4: misses 06:06 by 53 s. "
            "SLA infeasible: needs N = 5, N_max = 4; earliest finish 53 s late.");
}

TEST_F(DeadlinePolicyTest, StartsAHundredInOneAction) {
  target_.Announce(0, 40 * 254 * 100);
  target_.Read(40 * 254 * 100);
  EXPECT_EQ(target_.Decide().replicas, 100);
}

TEST_F(DeadlinePolicyTest, StartsAFractionLateAndBeforeItIsTooLate) {
  target_.Announce(0, 100);
  target_.Read(100);
  EXPECT_EQ(target_.Decide().replicas, 0);
  EXPECT_TRUE(target_.Decide().feasibility.feasible) << "what patience holds back is planned";
  EXPECT_EQ(target_.LookUntil(223).replicas, 0);
  const Decision decision = target_.LookUntil(224);
  EXPECT_EQ(decision.replicas, 1);
  EXPECT_EQ(decision.binding, Binding::kLateStart);
}

TEST_F(DeadlinePolicyTest, SpendsReplicasOnAnAim) {
  target_.options.aim = absl::Seconds(100);
  target_.Announce(0, 30'000);
  target_.Read(30'000);
  EXPECT_EQ(target_.Decide().replicas, 12) << "30,000 / (40 · (100 - 1 - 5 - 30)) - 0.5 = 11.2";
}

TEST_F(DeadlinePolicyTest, DoesNotChaseAnAimThatNoNewReplicaCouldMeet) {
  target_.options.aim = absl::Seconds(10);
  target_.Announce(0, 3'000);
  target_.Read(3'000);
  EXPECT_LE(target_.Decide().replicas, 7);
}

TEST_F(DeadlinePolicyTest, StartsOneToLearnTheSpeedAndLearnsItFromTheQueue) {
  target_.observation.estimates.items_per_second = 0;
  target_.Announce(0, 30'000);
  target_.Read(30'000);
  EXPECT_EQ(target_.Decide().replicas, 1);
  target_.Ready(1);
  Decision decision;
  for (int second = 1; second <= 5; ++second) {
    target_.Now(second);
    target_.Read(30'000 - 40 * second, 40 * second);
    decision = target_.Decide();
  }
  EXPECT_EQ(decision.replicas, 3);
}

// It called work feasible that was minutes late, as long as no replica had come.
TEST_F(DeadlinePolicyTest, CallsWorkThatIsLateLateThoughItKnowsNoSpeed) {
  target_.observation.estimates.items_per_second = 0;
  target_.Announce(0, 30);
  target_.Read(30);
  EXPECT_TRUE(target_.Decide().feasibility.feasible);
  const double late = absl::ToDoubleSeconds(target_.options.sla) + 10;
  target_.Now(late);
  target_.Read(30);
  const Decision decision = target_.Decide();
  EXPECT_EQ(decision.replicas, 1);
  EXPECT_FALSE(decision.feasibility.feasible);
  EXPECT_EQ(decision.feasibility.late_by, absl::Seconds(10));
}

TEST_F(DeadlinePolicyTest, BelievesTheQueueWhereTheEstimateIsTooHigh) {
  target_.Ready(10);
  target_.Announce(0, 100'000);
  for (int second = 0; second <= 20; ++second) {
    target_.Now(second);
    target_.Read(100'000 - 300 * second, 300 * second);
    EXPECT_EQ(target_.Decide().replicas > 10, second >= 1) << second;
  }
}

TEST_F(DeadlinePolicyTest, LetsIdleReplicasGoAfterAsLongAsAStartCosts) {
  target_.Ready(4);
  target_.Read(0);
  target_.Idle(4, 0);
  target_.Decide();
  Decision decision = target_.LookUntil(29);
  EXPECT_EQ(decision.replicas, 4);
  EXPECT_EQ(decision.binding, Binding::kHold);
  decision = target_.LookUntil(30);
  EXPECT_EQ(decision.replicas, 0);
  EXPECT_EQ(decision.binding, Binding::kIdle);
}

TEST_F(DeadlinePolicyTest, KeepsIdleReplicasThatTheQueuedWorkWillNeed) {
  target_.Ready(4);
  target_.Read(0);
  target_.Idle(4, 0);
  target_.LookUntil(29);
  target_.Announce(30, 20'000);
  target_.Now(30);
  target_.Read(20'000);
  EXPECT_EQ(target_.Decide().replicas, 2) << "20,000 / (40 · 284) = 1.8";
}

TEST_F(DeadlinePolicyTest, NeverTakesAStartBack) {
  target_.Announce(0, 60'000);
  target_.Read(60'000);
  target_.CarryOut(target_.Decide());
  const int started = target_.observation.fleet.committed();
  ASSERT_GT(started, 0);
  target_.Now(1);
  target_.Read(0);
  EXPECT_EQ(target_.Decide().replicas, started);
}

TEST_F(DeadlinePolicyTest, ObeysItsBounds) {
  target_.observation.bounds = {3, 5, 2};
  target_.Read(0);
  Decision decision = target_.Decide();
  EXPECT_EQ(decision.replicas, 3);
  EXPECT_EQ(decision.standby, 2);
  EXPECT_EQ(decision.binding, Binding::kMin);
  target_.Ready(9);
  decision = target_.Decide();
  EXPECT_EQ(decision.replicas, 5);
  EXPECT_EQ(decision.binding, Binding::kMax);
}

TEST_F(DeadlinePolicyTest, AddsTasksBeforeReplicas) {
  target_.Ready(2);
  target_.observation.fleet.tasks = 4;
  target_.observation.fleet.max_tasks = 8;
  target_.observation.estimates.cpu_share = 0.4;
  target_.Announce(0, 40'000);
  target_.Read(40'000);
  Decision decision = target_.Decide();
  EXPECT_EQ(decision.tasks, 8);
  EXPECT_EQ(decision.replicas, 2);
  EXPECT_EQ(decision.binding, Binding::kThreads);
  target_.CarryOut(decision);
  decision = target_.Decide();
  EXPECT_EQ(decision.tasks, 8);
  EXPECT_EQ(decision.replicas, 2) << "the estimate is still of four tasks";
  EXPECT_EQ(target_.LookUntil(11).replicas, 4) << "the tasks did not help";
}

TEST_F(DeadlinePolicyTest, AddsTasksWhereNewReplicasWouldComeTooLate) {
  target_.options.sla = absl::Seconds(20);
  target_.Ready(2);
  target_.observation.fleet.tasks = 4;
  target_.observation.fleet.max_tasks = 8;
  target_.observation.estimates.cpu_share = 0.4;
  target_.Announce(0, 2000);
  target_.Read(2000);
  const Decision decision = target_.Decide();
  EXPECT_EQ(decision.replicas, 2) << "done after 25 s, when a new one would not even be ready";
  EXPECT_EQ(decision.tasks, 8) << "done after 12.5 s";
  EXPECT_TRUE(decision.feasibility.feasible);
}

TEST_F(DeadlinePolicyTest, KeepsIdleReplicasUntilMoreTasksHaveShownTheirWorth) {
  target_.Ready(4);
  target_.Idle(2, -60);
  target_.observation.fleet.tasks = 4;
  target_.observation.fleet.max_tasks = 8;
  target_.observation.estimates.cpu_share = 0.4;
  target_.Announce(0, 60'000);
  target_.Read(60'000);
  const Decision decision = target_.Decide();
  EXPECT_EQ(decision.tasks, 8);
  EXPECT_EQ(decision.replicas, 4);
  target_.CarryOut(decision);
  EXPECT_EQ(target_.LookUntil(9).replicas, 4);
  target_.observation.estimates.items_per_second = 80;
  EXPECT_EQ(target_.LookUntil(10).replicas, 3) << "60,000 / (80 · 274) = 2.7";
}

TEST_F(DeadlinePolicyTest, DoesNotGrowWhereTheQueueThrottles) {
  target_.Ready(1);
  target_.observation.estimates.throttled_share = 0.05;
  target_.Announce(0, 30'000);
  target_.Read(30'000);
  const Decision decision = target_.Decide();
  EXPECT_EQ(decision.replicas, 1);
  EXPECT_EQ(decision.wanted, 3);
  EXPECT_EQ(decision.binding, Binding::kThrottled);
  EXPECT_FALSE(decision.feasibility.feasible);
  target_.Ready(0);
  EXPECT_EQ(target_.Decide().replicas, 3) << "nobody is throttled where nobody works";
}

TEST_F(DeadlinePolicyTest, ParksReplicasWhereTheSlaIsShorterThanAColdStart) {
  target_.options.sla = absl::Seconds(20);
  target_.Announce(0, 3'400);
  target_.Read(3'400);
  EXPECT_EQ(target_.Decide().standby, 5);
}

TEST_F(DeadlinePolicyTest, SizesByTheRateWhereThereIsNoTimeToQueue) {
  target_.options.sla = absl::Seconds(25);
  target_.observation.estimates.service_time = absl::Seconds(10);
  target_.observation.estimates.items_per_second = 0.1;
  target_.observation.bounds.max = 100;
  Decision decision;
  for (int second = 0; second <= 60; ++second) {
    target_.Now(second);
    target_.Announce(second, 1);
    target_.Ready(std::max(1, decision.replicas));
    target_.Read(std::min(second + 1, 10), second);
    decision = target_.Decide();
  }
  EXPECT_GE(decision.replicas, 12) << "ten are busy on average";
  EXPECT_LE(decision.replicas, 30);
}

TEST_F(DeadlinePolicyTest, KeepsWhatThereIsWithoutStatisticsAndStillHonoursAnnouncements) {
  target_.Ready(4);
  target_.Read(0);
  target_.Idle(4, 0);
  target_.Decide();
  target_.LoseStatistics();
  Decision decision = target_.LookUntil(600);
  EXPECT_EQ(decision.replicas, 4);
  EXPECT_EQ(decision.binding, Binding::kNoMetrics);
  target_.Announce(600, 100'000);
  EXPECT_EQ(target_.Decide().replicas, 9) << "4 + 5.4 - 0.5";
}

TEST_F(DeadlinePolicyTest, RaisesToTheFloorAfterThreeLooksWithoutStatistics) {
  target_.options.on_metric_loss.floor = 2;
  target_.LoseStatistics();
  EXPECT_EQ(target_.Decide().replicas, 0);
  EXPECT_EQ(target_.LookUntil(1).replicas, 0);
  const Decision decision = target_.LookUntil(2);
  EXPECT_EQ(decision.replicas, 2);
  EXPECT_EQ(decision.binding, Binding::kNoMetrics);
}

TEST_F(DeadlinePolicyTest, TakesVeryOldStatisticsForNone) {
  target_.Ready(2);
  target_.Read(0);
  target_.Idle(2, 0);
  target_.Now(200);
  EXPECT_EQ(target_.Decide().binding, Binding::kNoMetrics);
}

TEST_F(DeadlinePolicyTest, ReckonsWhatOldStatisticsCannotShowYet) {
  target_.Ready(2);
  target_.Announce(0, 20'000);
  target_.Read(20'000);
  target_.Decide();
  // A minute later the statistics are still those of the beginning.
  for (int second = 1; second <= 60; ++second) {
    target_.Now(second);
    EXPECT_EQ(target_.Decide().replicas, 2) << second;
  }
}

TEST_F(DeadlinePolicyTest, FindsWorkWhoseTriggersWereLostWhileNobodyLooked) {
  target_.Read(0);
  target_.Decide();
  target_.Now(60);
  target_.Read(100'000);
  target_.observation.queues[0].oldest_age = absl::Seconds(55);
  EXPECT_EQ(target_.Decide().replicas, 13) << "d is 55 s nearer: 100,000 / (40 · 199) = 12.6";
}

TEST_F(DeadlinePolicyTest, SurvivesAClockThatJumps) {
  target_.Announce(0, 30'000);
  target_.Read(30'000);
  target_.CarryOut(target_.Decide());
  const int before = target_.observation.fleet.committed();
  target_.Now(-3600);
  target_.observation.fleet.starting.assign(before, target_.At(-3570));
  target_.Read(30'000);
  Decision decision = target_.Decide();
  EXPECT_EQ(decision.replicas, before) << "the work counts as put now";
  target_.observation.queues[0].at = target_.At(86'400);
  decision = target_.LookUntil(-3599);
  EXPECT_EQ(decision.replicas, before);
}

TEST_F(DeadlinePolicyTest, BearsGarbage) {
  target_.observation.estimates.items_per_second = std::nan("");
  target_.observation.estimates.cpu_share = -1;
  target_.observation.estimates.cold_start = -absl::InfiniteDuration();
  target_.observation.bounds = {-5, std::numeric_limits<int>::max(), -1};
  target_.observation.fleet.ready = -7;
  target_.Announce(0, std::numeric_limits<int64_t>::max());
  target_.Read(std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(target_.Decide().replicas, 1);
  target_.observation.estimates.items_per_second = 1e-300;
  EXPECT_EQ(target_.Decide().replicas, 1);
  target_.observation.estimates.items_per_second = 40;
  EXPECT_EQ(target_.Decide().replicas, 1'000'000);
}

TEST(MakeDeadlinePolicyTest, RefusesOptionsThatAreOutOfBounds) {
  const auto refuses = [](auto change) {
    DeadlineOptions options;
    options.sla = absl::Seconds(60);
    EXPECT_TRUE(MakeDeadlinePolicy(options).ok());
    change(&options);
    return MakeDeadlinePolicy(options).status().code() == absl::StatusCode::kInvalidArgument;
  };
  EXPECT_TRUE(refuses([](DeadlineOptions* o) { o->sla = absl::ZeroDuration(); }));
  EXPECT_TRUE(refuses([](DeadlineOptions* o) { o->sla = absl::InfiniteDuration(); }));
  EXPECT_TRUE(refuses([](DeadlineOptions* o) { o->aim = -absl::Seconds(1); }));
  EXPECT_TRUE(refuses([](DeadlineOptions* o) { o->patience = 1.1; }));
  EXPECT_TRUE(refuses([](DeadlineOptions* o) { o->patience = std::nan(""); }));
  EXPECT_TRUE(refuses([](DeadlineOptions* o) { o->hold = -1; }));
  EXPECT_TRUE(refuses([](DeadlineOptions* o) { o->rate_risk = 0; }));
}

}  // namespace
}  // namespace muster::scaling::policy
