// SPDX-License-Identifier: Apache-2.0
#include "muster/scaling/replay/simulator.h"

#include <memory>
#include <optional>

#include "gtest/gtest.h"
#include "muster/scaling/replay/baseline_policies.h"
#include "muster/scaling/replay/options.h"
#include "muster/scaling/replay/oracle.h"
#include "muster/scaling/replay/replay.h"
#include "muster/scaling/replay/station.h"

namespace muster::scaling::replay {
namespace {

Trace Bursts(const std::vector<std::pair<int64_t, int64_t>>& bursts) {
  Trace trace;
  trace.start = absl::FromUnixSeconds(1'000'000);
  for (const auto& [second, items] : bursts) {
    trace.arrivals.push_back({second * kSecondUs, items, 0});
    trace.items += items;
    trace.seconds = second + 1;
  }
  return trace;
}

SimOptions Workers() {
  SimOptions options;
  options.service_time = absl::Milliseconds(100);  // 10 a second and replica
  options.cold_start = absl::Seconds(5);
  options.sla = absl::Seconds(60);
  return options;
}

// Decides as its script says, and keeps the announcements and observations.
class Scripted final : public scaling::policy::Policy {
 public:
  using Script = std::function<int(const scaling::policy::Observation&)>;
  explicit Scripted(Script script) : script_(std::move(script)) {}

  void Announce(const scaling::policy::Announcement& announcement) override {
    announced_.push_back(announcement);
  }
  scaling::policy::Decision Decide(const scaling::policy::Observation& observation) override {
    seen_.push_back(observation);
    scaling::policy::Decision decision;
    decision.replicas = script_(observation);
    decision.standby = standby_;
    return decision;
  }

  Script script_;
  int standby_ = 0;
  std::vector<scaling::policy::Announcement> announced_;
  std::vector<scaling::policy::Observation> seen_;
};

int64_t SecondOf(const scaling::policy::Observation& observation) {
  return absl::ToUnixSeconds(observation.now) - 1'000'000;
}

class BothServices : public ::testing::TestWithParam<Service> {
 protected:
  BothServices() { options_ = Workers(), options_.service = GetParam(); }

  Metrics Run(const Trace& trace, Scripted::Script script, int standby = 0) {
    policy_.emplace(std::move(script));
    policy_->standby_ = standby;
    return Simulate(trace, options_, &*policy_, {});
  }

  SimOptions options_;
  std::optional<Scripted> policy_;
};

INSTANTIATE_TEST_SUITE_P(Services, BothServices,
                         ::testing::Values(Service::kFluid, Service::kFixed),
                         [](const auto& service) {
                           return service.param == Service::kFluid ? "Fluid" : "ByTheItem";
                         });

TEST_P(BothServices, ServesABurstAsFastAsItsReplicasCan) {
  // Two replicas are ready after 5 s and then take 10 s for 200 items.
  const Metrics metrics = Run(Bursts({{0, 200}}), [](const auto&) { return 2; });
  EXPECT_EQ(metrics.items, 200);
  EXPECT_EQ(metrics.latencies.max_us(), 15 * kSecondUs);
  EXPECT_NEAR(static_cast<double>(metrics.latencies.Percentile(0.5)), 10e6, 4e5);
  EXPECT_EQ(metrics.violations, 0);
  EXPECT_DOUBLE_EQ(metrics.work_seconds, 20);
  EXPECT_EQ(metrics.actions, 1);
  // The cost runs from the order to the last item, because the script keeps the replicas.
  EXPECT_DOUBLE_EQ(metrics.replica_seconds, 2 * 15);
}

TEST_P(BothServices, CountsWhatIsLateExactly) {
  // One replica works from 5 s on and does 10 items a second: 550 of 600 by the sixtieth second.
  const Metrics metrics = Run(Bursts({{0, 600}}), [](const auto&) { return 1; });
  EXPECT_EQ(metrics.violations, 50);
}

TEST_P(BothServices, RunsSeveralItemsAtATimeInAReplica) {
  options_.tasks = 4;
  const Metrics metrics = Run(Bursts({{0, 200}}), [](const auto&) { return 1; });
  EXPECT_EQ(metrics.latencies.max_us(), 10 * kSecondUs);
  EXPECT_DOUBLE_EQ(metrics.work_seconds, 5);
}

TEST_P(BothServices, ChargesStartingReplicasAndClosesTheAccountWithTheLastAction) {
  // Work until 15 s, let go at 20 s.
  const Metrics metrics =
      Run(Bursts({{0, 200}}), [](const auto& seen) { return SecondOf(seen) < 20 ? 2 : 0; });
  EXPECT_DOUBLE_EQ(metrics.replica_seconds, 40);
  EXPECT_DOUBLE_EQ(metrics.ready_seconds, 30);
  EXPECT_NEAR(metrics.idle_share(), 1.0 / 3, 1e-9);
  EXPECT_EQ(metrics.actions, 2);
}

TEST_P(BothServices, AnnouncesWhatCameAndShowsTheQueueAndTheFleet) {
  options_.min = 1;
  Run(Bursts({{2, 35}}), [](const auto& seen) { return SecondOf(seen) >= 3 ? 3 : 1; });
  ASSERT_EQ(policy_->announced_.size(), 1u);
  EXPECT_EQ(policy_->announced_[0].items, 35);
  EXPECT_EQ(policy_->announced_[0].at, absl::FromUnixSeconds(1'000'002));
  const scaling::policy::Observation& before = policy_->seen_[1];
  EXPECT_EQ(before.fleet.ready, 1);
  ASSERT_EQ(before.fleet.idle_since.size(), 1u);
  EXPECT_EQ(before.fleet.idle_since[0], absl::FromUnixSeconds(1'000'000));
  const scaling::policy::Observation& burst = policy_->seen_[2];
  EXPECT_EQ(burst.queues[0].ready + burst.queues[0].in_flight, 35);
  EXPECT_EQ(burst.queues[0].in_flight, 1);
  EXPECT_TRUE(burst.fleet.idle_since.empty());
  const scaling::policy::Observation& later = policy_->seen_[4];
  EXPECT_EQ(later.fleet.starting.size(), 2u);
  EXPECT_EQ(later.fleet.starting[0], absl::FromUnixSeconds(1'000'008));
  EXPECT_EQ(later.queues[0].total_out, 20);
  EXPECT_EQ(later.queues[0].oldest_age, absl::Seconds(2));
}

TEST_P(BothServices, TakesStartingReplicasAwayFirstAndThenThoseIdleLongest) {
  options_.min = 0;
  Run(Bursts({{0, 1}, {20, 1}}), [](const auto& seen) {
    const int64_t second = SecondOf(seen);
    return second < 2 ? 1 : second < 8 ? 2 : second < 9 ? 4 : second < 15 ? 2 : 1;
  });
  EXPECT_EQ(policy_->seen_[9].fleet.starting.size(), 2u);
  EXPECT_EQ(policy_->seen_[10].fleet.starting.size(), 0u);
  EXPECT_EQ(policy_->seen_[10].fleet.ready, 2);
  const absl::Time stays = policy_->seen_[15].fleet.idle_since.back();
  ASSERT_EQ(policy_->seen_[16].fleet.idle_since.size(), 1u);
  EXPECT_EQ(policy_->seen_[16].fleet.idle_since[0], stays);
}

TEST_P(BothServices, GivesUpOnAPolicyThatNeverServes) {
  const Metrics metrics = Run(Bursts({{0, 7}}), [](const auto&) { return 0; });
  EXPECT_EQ(metrics.items, 7);
  EXPECT_EQ(metrics.violations, 7);
  EXPECT_GE(metrics.latencies.max_us(), kPatienceSeconds * kSecondUs);
}

TEST_P(BothServices, KeepsDecisionsWithinTheBounds) {
  options_.min = 1;
  options_.max = 3;
  Run(Bursts({{0, 100}}), [](const auto& seen) { return SecondOf(seen) < 8 ? 1'000'000 : -5; });
  EXPECT_EQ(policy_->seen_[7].fleet.committed(), 3);
  EXPECT_EQ(policy_->seen_[20].fleet.committed(), 1);
}

// As the scaling agent does: the policy's replicas and its standby are ordered together.
TEST_P(BothServices, HasThoseOnStandbyBesideTheOthersAndShowsTheIdleOnesAsParked) {
  options_.max = 4;
  const Metrics metrics = Run(
      Bursts({{20, 300}, {60, 1}}), [](const auto&) { return 1; }, 2);
  EXPECT_EQ(metrics.latencies.max_us(), 10 * kSecondUs) << "all three work on the burst";
  const scaling::policy::Observation& at_rest = policy_->seen_[15];
  const scaling::policy::Observation& at_work = policy_->seen_[22];
  EXPECT_EQ(at_rest.fleet.parked, 2);
  EXPECT_EQ(at_rest.fleet.ready, 1);
  EXPECT_EQ(at_work.fleet.parked, 0);
  EXPECT_EQ(at_work.fleet.ready, 3);
  Run(
      Bursts({{20, 1}}), [](const auto&) { return 1; }, 7);
  const scaling::policy::Fleet& bounded = policy_->seen_.back().fleet;
  EXPECT_EQ(bounded.parked + bounded.committed(), 4);
}

TEST_P(BothServices, ShowsStatisticsAsLateAsTheyAre) {
  options_.faults.metrics_delay = absl::Seconds(30);
  Run(Bursts({{10, 1000}}), [](const auto&) { return 1; });
  EXPECT_TRUE(policy_->seen_[29].queues.empty());
  EXPECT_EQ(policy_->seen_[39].queues[0].ready, 0);
  EXPECT_EQ(policy_->seen_[40].queues[0].total_in, 1000);
  EXPECT_EQ(policy_->seen_[40].queues[0].at, absl::FromUnixSeconds(1'000'010));
}

TEST_P(BothServices, LosesTriggersAndMisjudgesSpeedAsAsked) {
  std::vector<std::pair<int64_t, int64_t>> bursts;
  for (int64_t second = 0; second < 1000; ++second) bursts.push_back({second, 1});
  options_.faults.lost_triggers = 0.1;
  options_.faults.rate_factor = 1.2;
  Run(Bursts(bursts), [](const auto&) { return 1; });
  EXPECT_NEAR(static_cast<double>(policy_->announced_.size()), 900, 40);
  EXPECT_DOUBLE_EQ(policy_->seen_[0].estimates.items_per_second, 12);
}

TEST_P(BothServices, LeavesThePolicyAloneWhileTheAgentIsDown) {
  options_.faults.outages = {{absl::Seconds(3), absl::Seconds(10)}};
  Run(Bursts({{0, 1}, {5, 10}}), [](const auto&) { return 1; });
  EXPECT_EQ(SecondOf(policy_->seen_[2]), 2);
  EXPECT_EQ(SecondOf(policy_->seen_[3]), 13);
  EXPECT_EQ(policy_->announced_.size(), 1u);
}

TEST(EngineTest, DrainsABusyReplicaBeforeItIsGone) {
  SimOptions options = Workers();
  options.service = Service::kFixed;
  options.service_time = absl::Seconds(10);
  options.min = 0;
  options.cold_start = absl::ZeroDuration();
  Scripted policy([](const auto& seen) { return SecondOf(seen) < 3 ? 2 : 0; });
  const Metrics metrics = Simulate(Bursts({{0, 2}}), options, &policy, {});
  EXPECT_EQ(policy.seen_[5].fleet.draining, 2);
  EXPECT_EQ(policy.seen_[5].fleet.ready, 0);
  EXPECT_EQ(policy.seen_[11].fleet.draining, 0);
  EXPECT_EQ(metrics.latencies.max_us(), 10 * kSecondUs);  // nothing was killed
  EXPECT_DOUBLE_EQ(metrics.replica_seconds, 20);
}

TEST(EngineTest, ServesByTheItemAtInstantsBetweenSeconds) {
  SimOptions options = Workers();
  options.service = Service::kFixed;
  options.min = 1;
  Trace trace = Bursts({{0, 1}});
  trace.arrivals.push_back({2'250'000, 2, 0});
  trace.items = 3;
  trace.seconds = 3;
  FixedPolicy policy(1);
  const Metrics metrics = Simulate(trace, options, &policy, {});
  EXPECT_EQ(metrics.latencies.max_us(), 200'000);
  EXPECT_EQ(metrics.violations, 0);
}

TEST(EngineTest, YieldsTheSameHashForTheSameSeedAndAnotherForAnother) {
  SimOptions options = Workers();
  options.service = Service::kExponential;
  options.cold_start_shape = Shape::kLognormal;
  const Trace trace = Bursts({{0, 500}, {100, 300}, {130, 2000}});
  const auto run = [&](uint64_t seed) {
    ReplayRequest request;
    request.options = options;
    request.options.seed = seed;
    scaling::policy::DeadlineOptions deadline;
    deadline.sla = options.sla;
    request.policies = *FindPolicies("deadline", options, deadline);
    return Replay(trace, request)->front().metrics;
  };
  EXPECT_EQ(run(1).decision_hash, run(1).decision_hash);
  EXPECT_EQ(run(1).latencies.Percentile(0.5), run(1).latencies.Percentile(0.5));
  EXPECT_NE(run(1).decision_hash, run(2).decision_hash);
}

TEST(EngineTest, LiquidAndItemsAgreeOnWhatLastsLong) {
  const Trace trace = Bursts({{0, 5000}, {50, 3000}, {400, 1}});
  SimOptions options = Workers();
  FixedPolicy policy(20);
  const Metrics fluid = Simulate(trace, options, &policy, {});
  options.service = Service::kFixed;
  const Metrics items = Simulate(trace, options, &policy, {});
  EXPECT_EQ(fluid.items, items.items);
  EXPECT_NEAR(fluid.work_seconds, items.work_seconds, 1e-6);
  for (const double share : {0.5, 0.95, 0.99}) {
    EXPECT_NEAR(static_cast<double>(fluid.latencies.Percentile(share)),
                static_cast<double>(items.latencies.Percentile(share)), 2e5);
  }
}

TEST(ReplayTest, NoPolicyWithoutViolationsIsCheaperThanTheOracle) {
  const base::UniformSource uniform = base::SeededUniform(99);
  for (int round = 0; round < 20; ++round) {
    std::vector<std::pair<int64_t, int64_t>> bursts;
    int64_t second = 0;
    for (int i = 0; i < 20; ++i) {
      second += static_cast<int64_t>(uniform() * 100);
      bursts.push_back({second, 1 + static_cast<int64_t>(uniform() * 3000)});
    }
    ReplayRequest request;
    request.options = Workers();
    scaling::policy::DeadlineOptions deadline;
    deadline.sla = request.options.sla;
    for (const char* name : {"deadline", "keda:sweep", "keda:desired", "keda:desired:direct", "hpa",
                             "backlog", "fixed:30", "oracle"}) {
      const absl::StatusOr<std::vector<PolicyEntry>> found =
          FindPolicies(name, request.options, deadline);
      request.policies.insert(request.policies.end(), found->begin(), found->end());
    }
    const absl::StatusOr<std::vector<ReplayRow>> rows = Replay(Bursts(bursts), request);
    ASSERT_TRUE(rows.ok()) << rows.status();
    for (const ReplayRow& row : *rows) {
      if (row.metrics.violations > 0) continue;
      EXPECT_GE(row.cost_over_oracle, 1 - 1e-9) << row.policy;
    }
    EXPECT_DOUBLE_EQ(rows->back().cost_over_oracle, 1);
  }
}

// Nineteen of twenty items were late where only the replicas for the work were simulated.
TEST(ReplayTest, AStandbyDoesTheBatchesForWhichAColdStartIsTooLong) {
  std::vector<std::pair<int64_t, int64_t>> bursts;
  for (int64_t batch = 0; batch < 100; ++batch) bursts.push_back({batch * 600, 3000});
  ReplayRequest request;
  request.options = Workers();
  request.options.cold_start = absl::Seconds(90);
  scaling::policy::DeadlineOptions deadline;
  deadline.sla = request.options.sla;
  for (const char* name : {"deadline", "keda:desired:direct"}) {
    request.policies.push_back(FindPolicies(name, request.options, deadline)->front());
  }
  const absl::StatusOr<std::vector<ReplayRow>> rows = Replay(Bursts(bursts), request);
  ASSERT_TRUE(rows.ok()) << rows.status();
  for (const ReplayRow& row : *rows) {
    EXPECT_LT(row.metrics.violation_ratio(), 0.02) << row.policy;
    EXPECT_LT(row.metrics.replica_seconds, 7.5 * 60'000) << row.policy << ": six are on standby";
  }
}

TEST(ReplayTest, AddsUpSeeds) {
  ReplayRequest request;
  request.options = Workers();
  request.seeds = 3;
  request.policies = *FindPolicies("keda", request.options, {});
  const Trace trace = Bursts({{0, 500}});
  const ReplayRow all = Replay(trace, request)->front();
  EXPECT_EQ(all.metrics.items, 1500);
  double sum = 0;
  request.seeds = 1;
  for (request.options.seed = 1; request.options.seed <= 3; ++request.options.seed) {
    sum += Replay(trace, request)->front().metrics.replica_seconds;
  }
  EXPECT_DOUBLE_EQ(all.metrics.replica_seconds, sum);
}

TEST(ReplayTest, RefusesWhatItCannotRun) {
  ReplayRequest request;
  request.options = Workers();
  request.seeds = 0;
  EXPECT_TRUE(absl::IsInvalidArgument(Replay(Bursts({{0, 1}}), request).status()));
  request.seeds = 1;
  request.options.min = 5;
  request.options.max = 4;
  EXPECT_TRUE(absl::IsInvalidArgument(Replay(Bursts({{0, 1}}), request).status()));
  request.options = Workers();
  request.options.service = Service::kFixed;
  EXPECT_TRUE(absl::IsOutOfRange(Replay(Bursts({{0, kMaxItemsOneByOne + 1}}), request).status()));
  request.options.service_time = absl::Hours(24);
  request.options.service = Service::kFluid;
  EXPECT_TRUE(absl::IsOutOfRange(Replay(Bursts({{0, kMaxItems}}), request).status()));
}

TEST(CatalogueTest, KnowsItsNamesAndRefusesOthers) {
  const SimOptions options = Workers();
  EXPECT_EQ(FindPolicies("keda:sweep", options, {})->size(), 12u);
  EXPECT_EQ(FindPolicies("keda:mud/2:fast", options, {})->front().settings,
            "target=300, poll=5s, cooldown=1m, up=900% or 20, stabilization=1m");
  EXPECT_EQ(FindPolicies("keda", options, {})->front().settings, "target=5, poll=30s, cooldown=5m");
  for (const char* name :
       {"", "kedda", "keda:x", "keda:0", "keda:-1", "keda:nan", "keda:5:slow", "keda:5:fast:x",
        "fixed", "fixed:-1", "fixed:x", "oracle:1", "hpa:", "backlog:1:2", "deadline:x"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(FindPolicies(name, options, {}).status())) << name;
  }
  EXPECT_TRUE(absl::IsInvalidArgument(FindPolicies("deadline", options, {}).status()));
}

TEST(StationDeathTest, TheSimulatedClockNeverGoesBack) {
  SimOptions options = Workers();
  options.service = Service::kFluid;
  const Trace trace = Bursts({{0, 10}});
  const std::unique_ptr<Station> station = MakeStation(trace, options);
  station->AdvanceTo(2 * kSecondUs);
  EXPECT_DEATH(station->AdvanceTo(kSecondUs), "from 2000000 us to 1000000");
}

}  // namespace
}  // namespace muster::scaling::replay
