// SPDX-License-Identifier: Apache-2.0
#include "muster/scaling/rules/ruled_policy.h"

#include <algorithm>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/fakes/base/test_seed.h"
#include "tests/fakes/scaling/rules/ruled_policy_fixture.h"

namespace muster::scaling::rules {
namespace {

TEST_F(RuledPolicyTest, ShowsThePolicyTheBoundsInForce) {
  Rule(
      "constraints:\n"
      "- {name: base, rank: 1, target: t, range: [2, 20], standby: 3}\n"
      "- {name: peak, rank: 9, target: t, range: [5, 40], when: {from: '08:00', for: 1h}}\n");
  Decide(10);
  EXPECT_EQ(inner_->seen.bounds.min, 2);
  EXPECT_EQ(inner_->seen.bounds.max, 20);
  EXPECT_EQ(inner_->seen.bounds.standby, 3);
  Pass(absl::Hours(1));
  EXPECT_EQ(Decide(10).standby, 3);
  EXPECT_EQ(inner_->seen.bounds.min, 5);
  EXPECT_EQ(inner_->seen.bounds.max, 40);
  EXPECT_EQ(policy_->trace().ruling.range_by, "peak");
}

// The policy's own; the rules ask for theirs, and mean it.
TEST_F(RuledPolicyTest, KeepsTheStandbyOfThePolicyWithinItsBounds) {
  Rule("constraints: [{name: base, rank: 1, target: t, range: [0, 6]}]\n");
  inner_->next.standby = 5;
  EXPECT_EQ(Decide(2).standby, 4);
  EXPECT_EQ(Decide(9).standby, 0);
  Rule("constraints: [{name: base, rank: 1, target: t, budget: 60 replica-min/h}]\n");
  inner_->next.standby = 5;
  seen_.fleet.ready = 3;
  Decide(3);
  Pass(absl::Minutes(20));
  Decide(0);
  seen_.fleet.ready = 0;
  EXPECT_EQ(Decide(0).standby, 0) << "the hour's budget is spent";
}

TEST_F(RuledPolicyTest, SaysWhichBoundHeldThePolicyBack) {
  Rule("constraints: [{name: base, rank: 1, target: t, range: [2, 20]}]\n");
  EXPECT_EQ(Decide(21).replicas, 20);
  EXPECT_EQ(Decide(21).binding, Binding::kMax);
  EXPECT_EQ(Decide(1).replicas, 2);
  EXPECT_EQ(Decide(1).binding, Binding::kMin);
  EXPECT_EQ(Decide(7).replicas, 7);
  EXPECT_EQ(Decide(7).binding, Binding::kDeadline);
}

TEST_F(RuledPolicyTest, WarmsUpBeforeTheWindow) {
  Rule(
      "constraints: [{name: peak, rank: 1, target: t, range: [8, 20],"
      " when: {from: '08:00', for: 1h, prewarm: auto}}]\n");
  seen_.estimates.cold_start = absl::Seconds(90);
  Pass(absl::Minutes(58));
  EXPECT_EQ(Decide(0).replicas, 0);
  Pass(absl::Seconds(30));
  EXPECT_EQ(Decide(0).replicas, 8);
  EXPECT_EQ(policy_->trace().ruling.prewarmed_by, "peak");
}

TEST_F(RuledPolicyTest, LetsAConstraintBeatEveryReaction) {
  Rule(absl::StrCat("constraints: [{name: base, rank: 0, target: t, range: [0, 4]}]\nreactive:\n",
                    When(1000, "depth > 0", "set: 30")));
  Measure(1);
  EXPECT_EQ(Decide(3).replicas, 4);
  EXPECT_EQ(Decide(3).binding, Binding::kMax);
  EXPECT_EQ(policy_->trace().reaction, "depth > 0");
}

TEST_F(RuledPolicyTest, TakesOneStepAndStandsByIt) {
  Rule(absl::StrCat("reactive:\n", When(1, "depth > 0", "scale: '+25%'")));
  seen_.fleet.ready = 4;
  EXPECT_EQ(Run(4), 4);
  Measure(1);
  EXPECT_EQ(Decide(4).binding, Binding::kReaction);
  EXPECT_EQ(Run(4), 5);
  EXPECT_EQ(Run(4), 5);  // the same again, once that is done
  Pass(absl::Seconds(10));
  EXPECT_EQ(Run(4), 5);
  Measure(0);
  EXPECT_EQ(Run(4), 4);
}

TEST_F(RuledPolicyTest, StepsAgainOnceAllAreReadyAndAColdStartHasPassed) {
  Rule(absl::StrCat("reactive:\n", When(1, "depth > 0", "scale: '+50%'")));
  seen_.estimates.cold_start = absl::Seconds(60);
  seen_.fleet.ready = 4;
  Measure(1);
  EXPECT_EQ(Run(4), 6);
  Pass(absl::Seconds(59));
  EXPECT_EQ(Run(4), 6);
  Pass(absl::Seconds(1));
  seen_.fleet.ready = 5;
  seen_.fleet.starting = {now_};
  EXPECT_EQ(Decide(4).replicas, 6);
  seen_.fleet.ready = 6;
  seen_.fleet.starting.clear();
  EXPECT_EQ(Run(4), 9);
}

TEST_F(RuledPolicyTest, NeverAddsToWhatADeadlineAddsAnyway) {
  Rule(absl::StrCat("reactive:\n", When(1, "depth > 0", "scale: '+25%'")));
  seen_.fleet.ready = 4;
  Measure(1);
  EXPECT_EQ(Decide(10).replicas, 10);
  EXPECT_EQ(Decide(10).binding, Binding::kDeadline);
}

TEST_F(RuledPolicyTest, GrowsFromNothingByOneAtLeast) {
  Rule(absl::StrCat("reactive:\n", When(1, "depth > 0", "scale: '+1%'")));
  Measure(1);
  EXPECT_EQ(Run(0), 1);
}

TEST_F(RuledPolicyTest, DoesNothingOnAConditionThatLacksData) {
  Rule(absl::StrCat("reactive:\n", When(1, "cpu < 90", "set: 9"),
                    When(2, "not cpu < 90", "set: 11")));
  Measure(1, 0.1);  // but no ready replica can have this CPU use
  EXPECT_EQ(Decide(3).replicas, 3);
  seen_.fleet.ready = 1;
  EXPECT_EQ(Decide(3).replicas, 9);
}

TEST_F(RuledPolicyTest, LetsTheLargestIncreaseWinWithinARank) {
  Rule(absl::StrCat("reactive:\n", When(1, "depth > 0", "scale: '+3'"),
                    When(1, "depth > 1", "scale: '+100%'"), When(1, "depth > 2", "scale: '-5'"),
                    When(1, "depth > 3", "hold: up")));
  seen_.fleet.ready = 10;
  Measure(9);
  EXPECT_EQ(Decide(10).replicas, 20);
  EXPECT_EQ(policy_->trace().reaction, "depth > 1");
}

TEST_F(RuledPolicyTest, LetsTheHighestRankHaveTheLastWord) {
  Rule(absl::StrCat("reactive:\n", When(50, "cpu > 90", "hold: up"),
                    When(10, "depth > 0", "scale: '+25%'"),
                    When(60, "depth > 100", "scale: '+1'")));
  seen_.fleet.ready = 8;
  Measure(1);
  EXPECT_EQ(Decide(8).replicas, 10);
  Measure(1, 0.95);
  EXPECT_EQ(Decide(8).replicas, 8);
  EXPECT_EQ(Decide(30).replicas, 8);
  EXPECT_EQ(Decide(5).replicas, 8);  // the result of the step, held by the replicas that exist
  Measure(101, 0.95);
  EXPECT_EQ(Decide(8).replicas, 9);
}

TEST_F(RuledPolicyTest, StepsDownOnlyToWhatTheWorkNeeds) {
  Rule(absl::StrCat("reactive:\n", When(1, "depth < 10", "scale: '-50%'"),
                    When(1, "depth < 5", "scale: '-1'")));
  seen_.fleet.ready = 8;
  Measure(7);
  EXPECT_EQ(Decide(8, 0).replicas, 4);
  EXPECT_EQ(Decide(8, 6).replicas, 6);
  EXPECT_EQ(Decide(8, 9).replicas, 8);
  Measure(1);
  EXPECT_EQ(Decide(8, 0).replicas, 7);  // of two steps down, the smaller
}

TEST_F(RuledPolicyTest, SetsANumberWhateverThePolicyWants) {
  Rule(absl::StrCat("reactive:\n", When(1, "depth > 0", "set: 7"), When(1, "depth > 5", "set: 9")));
  Measure(1);
  EXPECT_EQ(Run(30, 30), 7);
  EXPECT_EQ(Run(0), 7);
  Measure(6);
  EXPECT_EQ(Run(0), 9);
  EXPECT_EQ(Run(30), 9);
}

TEST_F(RuledPolicyTest, HoldsWhatIsThereAgainstGrowthOrAgainstLettingGo) {
  Rule(absl::StrCat("reactive:\n", When(1, "depth > 10", "hold: up"),
                    When(1, "depth < 5", "hold: down")));
  seen_.fleet.ready = 8;
  Measure(11);
  EXPECT_EQ(Decide(20).replicas, 8);
  EXPECT_EQ(Decide(3).replicas, 3);
  Measure(1);
  EXPECT_EQ(Decide(20).replicas, 20);
  EXPECT_EQ(Decide(3).replicas, 8);
}

TEST_F(RuledPolicyTest, WaitsBetweenStepsUpButLetsOneBeCarriedOut) {
  Rule("stabilizer: {up_cooldown: 1m}\n");
  EXPECT_EQ(Decide(5).replicas, 5);
  Pass(absl::Seconds(1));
  EXPECT_EQ(Decide(5).replicas, 5);  // nothing has been started yet
  EXPECT_EQ(Decide(9).replicas, 5);
  EXPECT_EQ(Decide(9).binding, Binding::kStabilizer);
  seen_.fleet.ready = 5;
  Pass(absl::Seconds(58));
  EXPECT_EQ(Decide(9).replicas, 5);
  EXPECT_EQ(Decide(2).replicas, 2);
  Pass(absl::Seconds(1));
  EXPECT_EQ(Decide(9).replicas, 9);
}

TEST_F(RuledPolicyTest, LetsAConstraintRaiseTheFloorDuringACoolDown) {
  Rule(
      "stabilizer: {up_cooldown: 2h}\n"
      "constraints: [{name: c, rank: 1, target: t, range: [20, 30], when: {from: '08:00'}}]\n");
  EXPECT_EQ(Run(5), 5);
  Pass(absl::Hours(1));
  EXPECT_EQ(Run(5), 20);
}

TEST_F(RuledPolicyTest, LetsGoOnlyOfThoseThatWereIdleForLongEnough) {
  Rule("stabilizer: {idle_hold: 5m}\n");
  seen_.fleet.ready = 8;
  seen_.fleet.idle_since = {now_ - absl::Minutes(6), now_ - absl::Minutes(5), now_};
  EXPECT_EQ(Decide(0).replicas, 6);
  EXPECT_EQ(Decide(0).binding, Binding::kStabilizer);
  EXPECT_EQ(Decide(7).replicas, 7);
}

TEST_F(RuledPolicyTest, PassesAnnouncementsOn) {
  Rule("");
  policy_->Announce({now_, 500});
  EXPECT_EQ(inner_->announced, 500);
}

TEST_F(RuledPolicyTest, ChangesItsRulesAndKeepsWhatItHasDone) {
  const std::string step = absl::StrCat("reactive:\n", When(1, "depth > 0", "scale: '+50%'"));
  Rule(step);
  seen_.fleet.ready = 4;
  Measure(1);
  EXPECT_EQ(Run(4), 6);
  ASSERT_TRUE(policy_->Use(RulesOf(absl::StrCat(step, "mode: observe\n"))).ok());
  EXPECT_EQ(Run(4), 6);
  ASSERT_TRUE(policy_->Use(RulesOf("")).ok());
  EXPECT_EQ(Run(4), 4);
  const absl::Status refused = policy_->Use(RulesOf("", "u"));
  EXPECT_EQ(refused.code(), absl::StatusCode::kNotFound) << refused;
  EXPECT_EQ(Run(3), 3);
  EXPECT_EQ(RuledPolicy::Make(RulesOf(""), "u", nullptr).status().code(),
            absl::StatusCode::kNotFound);
}

// For all readings and demands: the decision lies within the current bounds, and stays the same
// after it has been carried out while nothing else changes.
TEST_F(RuledPolicyTest, StaysWithinItsBoundsAndAtRestWhateverHappens) {
  const uint64_t seed = base::testing::TestSeed();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937_64 random(seed);
  Rule(absl::StrCat(
      "constraints:\n- {name: a, rank: 1, target: t, range: [1, 30], budget: 900 replica-min/h}\n"
      "- {name: b, rank: 2, target: t, range: [5, 12], when: {cron: '*/7 * * * *', for: 3m}}\n"
      "reactive:\n",
      When(1, "depth > 50", "scale: '+25%'"), When(1, "depth < 20", "scale: '-2'"),
      When(2, "depth > 90", "set: 45"), When(3, "cpu > 80", "hold: up"),
      When(3, "cpu < 20", "hold: down"), "stabilizer: {up_cooldown: 10s, idle_hold: 20s}\n"));
  seen_.fleet.ready = 1;
  for (int i = 0; i < base::testing::CaseCount(20'000); ++i) {
    Measure(static_cast<int64_t>(random() % 100), static_cast<double>(random() % 100) / 100);
    if (random() % 10 == 0) seen_.queues.clear();
    seen_.fleet.idle_since.assign(random() % (seen_.fleet.ready + 1), now_ - absl::Seconds(30));
    const int wants = static_cast<int>(random() % 80) - 10;
    const Decision decision = Decide(wants);
    const scaling::policy::Bounds bounds = inner_->seen.bounds;
    ASSERT_LE(bounds.min, bounds.max);
    ASSERT_GE(decision.replicas, bounds.min);
    ASSERT_LE(decision.replicas, bounds.max);
    ASSERT_GE(decision.replicas, 0);
    // The replicas that were idle the longest leave first.
    auto& idle = seen_.fleet.idle_since;
    const int gone = std::max(0, seen_.fleet.ready - decision.replicas);
    idle.erase(idle.begin(), idle.begin() + std::min<int>(gone, static_cast<int>(idle.size())));
    seen_.fleet.ready = decision.replicas;
    ASSERT_EQ(Decide(wants).replicas, decision.replicas) << "step " << i;
    Pass(absl::Seconds(static_cast<int64_t>(random() % 5)));
  }
}

}  // namespace
}  // namespace muster::scaling::rules
