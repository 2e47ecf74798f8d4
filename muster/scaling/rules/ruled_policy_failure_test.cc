// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "muster/scaling/rules/limits.h"
#include "tests/fakes/scaling/rules/ruled_policy_fixture.h"

namespace muster::scaling::rules {
namespace {

// Exhausted budgets, lost readings, and a clock that steps back.
using RuledPolicyFailureTest = RuledPolicyTest;

TEST_F(RuledPolicyFailureTest, LetsNobodyGoUnseen) {
  Rule("");
  seen_.fleet.ready = 8;
  EXPECT_EQ(Run(8), 8);
  Pass(absl::Seconds(1));
  seen_.queues.clear();
  EXPECT_EQ(Decide(0).replicas, 8);
  EXPECT_EQ(Decide(0).binding, Binding::kNoMetrics);
  EXPECT_FALSE(policy_->trace().has_lost_metrics);
  EXPECT_EQ(Decide(10).replicas, 10);  // announcements still come
}

TEST_F(RuledPolicyFailureTest, KeepsWhatItWasAskedToKeepOnceReadingsAreLost) {
  for (const auto& [keep, expected] :
       std::vector<std::pair<std::string, int>>{{"max", 8}, {"current", 8}, {"floor", 2}}) {
    SCOPED_TRACE(keep);
    Rule(absl::StrCat("constraints: [{name: c, rank: 1, target: t, range: [2, 30]}]\n",
                      "reactive:\n", When(1, "not depth > 100", "set: 25"),
                      "on_metric_loss: {after: 3, keep: '", keep, "'}\n"));
    seen_.fleet.ready = 8;
    EXPECT_EQ(Decide(8).replicas, 25);
    seen_.queues.clear();
    for (int loss = 1; loss <= 2; ++loss) {
      Pass(absl::Seconds(1));
      for (int announcement = 0; announcement < 5; ++announcement) {
        EXPECT_EQ(Decide(0).replicas, 25);  // the last reading still counts
      }
    }
    Pass(absl::Seconds(1));
    EXPECT_EQ(Decide(0).replicas, expected);
    EXPECT_EQ(Decide(40).replicas, expected);
    EXPECT_TRUE(policy_->trace().has_lost_metrics);
    Measure(0);
    EXPECT_EQ(Decide(0).replicas, 25);
    EXPECT_FALSE(policy_->trace().has_lost_metrics);
  }
}

TEST_F(RuledPolicyFailureTest, ShrinksToWhatIsLeftOfTheBudgetButNotBelowWorkOrFloor) {
  Rule("constraints: [{name: c, rank: 1, target: t, range: [2, 50], budget: 100 replica-min/h}]\n");
  EXPECT_EQ(Run(50), 20);  // 100 replica-minutes, over five minutes
  EXPECT_EQ(Decide(50).binding, Binding::kMax);
  EXPECT_EQ(policy_->trace().budget_cap, 20);
  seen_.fleet.idle_since = std::vector<absl::Time>(13, now_);  // 7 are at work
  Pass(absl::Minutes(4));
  EXPECT_EQ(Decide(50).replicas, 7);
  EXPECT_NEAR(policy_->trace().budget_spent, 80, 1e-6);
  EXPECT_EQ(policy_->trace().budget_cap, 4);
  seen_.fleet.idle_since = std::vector<absl::Time>(20, now_);
  EXPECT_EQ(Run(50), 4);
  seen_.fleet.idle_since.clear();
  Pass(absl::Minutes(20));
  seen_.fleet.ready = 0;
  EXPECT_EQ(Run(50), 2);
  Pass(absl::Hours(2));
  EXPECT_EQ(Decide(50).replicas, 20);
}

// The tests below step the clock back to a time before all their readings and decisions.
constexpr absl::Duration kBack = -absl::Hours(1);

TEST_F(RuledPolicyFailureTest, SeesNewReadingsAfterTheClockSteppedBack) {
  Rule(absl::StrCat("  most: {queue: q, metric: depth, agg: max, over: 10m}\nreactive:\n",
                    When(1, "depth > 0", "set: 9"), When(2, "most > 0", "set: 12")));
  Measure(5);
  EXPECT_EQ(Decide(3).replicas, 12);
  Pass(kBack);
  Measure(0);
  EXPECT_EQ(Decide(3).replicas, 3);
  Measure(5);
  EXPECT_EQ(Decide(3).replicas, 12);
}

TEST_F(RuledPolicyFailureTest, EndsACoolDownWhenTheClockStepsBack) {
  Rule("stabilizer: {up_cooldown: 1m}\n");
  EXPECT_EQ(Run(5), 5);
  Pass(kBack);
  EXPECT_EQ(Run(9), 9);
  EXPECT_EQ(Run(12), 9);
  Pass(absl::Minutes(1));
  EXPECT_EQ(Run(12), 12);
}

TEST_F(RuledPolicyFailureTest, StandsByAStepWhenTheClockStepsBackAndThenTakesTheNext) {
  Rule(absl::StrCat("reactive:\n", When(1, "depth > 0", "scale: '+50%'")));
  seen_.fleet.ready = 4;
  Measure(1);
  EXPECT_EQ(Run(4), 6);
  Pass(kBack);
  Measure(1);
  EXPECT_EQ(Run(4), 6);
  Pass(kMinReactionPause);
  Measure(1);
  EXPECT_EQ(Run(4), 9);
}

TEST_F(RuledPolicyFailureTest, BeginsItsAccountAnewWhenTheClockStepsBack) {
  Rule("constraints: [{name: c, rank: 1, target: t, range: [0, 50], budget: 100 replica-min/h}]\n");
  EXPECT_EQ(Run(50), 20);
  Decide(50);  // these replicas are paid for from now on
  Pass(absl::Minutes(4));
  Decide(50);
  EXPECT_EQ(policy_->trace().budget_cap, 4);
  Pass(kBack);
  Decide(50);
  EXPECT_EQ(policy_->trace().budget_cap, 20);
  Pass(absl::Minutes(4));
  Decide(50);
  EXPECT_NEAR(policy_->trace().budget_spent, 80, 1e-6);
}

TEST_F(RuledPolicyFailureTest, NoticesLostReadingsAfterTheClockSteppedBack) {
  Rule("on_metric_loss: {after: 3, keep: current}\n");
  seen_.fleet.ready = 8;
  EXPECT_EQ(Decide(8).replicas, 8);
  seen_.queues.clear();
  Pass(kBack);
  for (int loss = 1; loss <= 3; ++loss) {
    EXPECT_EQ(Decide(10).replicas, 10) << loss;
    Pass(absl::Seconds(1));
  }
  EXPECT_EQ(Decide(10).replicas, 8);
  EXPECT_TRUE(policy_->trace().has_lost_metrics);
}

}  // namespace
}  // namespace muster::scaling::rules
