// SPDX-License-Identifier: Apache-2.0
#include "muster/scaling/rules/constraints.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "muster/scaling/rules/limits.h"
#include "muster/scaling/rules/rules_file.h"

namespace muster::scaling::rules {
namespace {

const absl::Duration kNoColdStart = absl::ZeroDuration();

// All times are UTC on Friday, 20 November 2026.
absl::Time Clock(int hour, int minute, int second = 0) {
  return absl::FromCivil(absl::CivilSecond(2026, 11, 20, hour, minute, second),
                         absl::UTCTimeZone());
}

ConstraintSchedule TableOf(const std::string& constraints) {
  auto rules = ParseRules(
      absl::StrCat("targets: {t: {kind: process, name: p, queues: [q], min: 1, max: 100}}\n",
                   "constraints:\n", constraints),
      "rules.yaml");
  EXPECT_TRUE(rules.ok()) << rules.status();
  return ConstraintSchedule(std::make_shared<const Rules>(std::move(*rules)), "t");
}

TEST(ConstraintScheduleTest, LeavesTheTargetItsOwnLimitsWhereNothingIsSaid) {
  const ConstraintSchedule table = TableOf("  []");
  const Ruling ruling = table.At(Clock(8, 0), kNoColdStart);
  EXPECT_EQ(ruling.range, (Range{1, 100}));
  EXPECT_EQ(ruling.range_by, "");
  EXPECT_FALSE(ruling.budget.has_value());
  EXPECT_EQ(ruling.standby, 0);
  EXPECT_EQ(table.NextChange(Clock(8, 0), kNoColdStart), absl::InfiniteFuture());
}

TEST(ConstraintScheduleTest, LetsTheHighestRankThatIsInForceRule) {
  const ConstraintSchedule table = TableOf(
      "- {name: high, rank: 9, target: t, range: [5, 50], when: {from: '08:00', for: 2h}}\n"
      "- {name: low, rank: 1, target: t, range: [2, 20]}\n"
      "- {name: middle, rank: 5, target: t, range: [3, 30], when: {from: '09:00', for: 2h}}\n");
  EXPECT_EQ(table.At(Clock(7, 59, 59), kNoColdStart).range_by, "low");
  EXPECT_EQ(table.At(Clock(8, 0), kNoColdStart).range_by, "high");
  EXPECT_EQ(table.At(Clock(9, 30), kNoColdStart).range, (Range{5, 50}));
  EXPECT_EQ(table.At(Clock(10, 30), kNoColdStart).range_by, "middle");
  EXPECT_EQ(table.At(Clock(11, 0), kNoColdStart).range_by, "low");
}

TEST(ConstraintScheduleTest, LeavesWhatAConstraintDoesNotStateToThoseBelow) {
  const ConstraintSchedule table = TableOf(
      "- {name: all, rank: 1, target: t, range: [2, 20], budget: 600 replica-min/h, standby: 1}\n"
      "- {name: ready, rank: 9, target: t, standby: 7}\n");
  const Ruling ruling = table.At(Clock(8, 0), kNoColdStart);
  EXPECT_EQ(ruling.range_by, "all");
  EXPECT_EQ(ruling.budget, 600);
  EXPECT_EQ(ruling.budget_by, "all");
  EXPECT_EQ(ruling.standby, 7);
  EXPECT_EQ(ruling.standby_by, "ready");
}

TEST(ConstraintScheduleTest, RaisesTheFloorAColdStartBeforeTheWindow) {
  const ConstraintSchedule table = TableOf(
      "- {name: base, rank: 1, target: t, range: [2, 20]}\n"
      "- {name: peak, rank: 9, target: t, range: [30, 90], standby: 4,"
      " when: {from: '08:00', for: 1h, prewarm: auto}}\n");
  const absl::Duration cold_start = absl::Seconds(90);
  EXPECT_EQ(table.At(Clock(7, 58, 29), cold_start).range, (Range{2, 20}));
  const Ruling warm = table.At(Clock(7, 58, 30), cold_start);
  EXPECT_EQ(warm.range, (Range{30, 30}));
  EXPECT_EQ(warm.range_by, "base");
  EXPECT_EQ(warm.standby, 4);
  EXPECT_EQ(warm.prewarmed_by, "peak");
  EXPECT_EQ(table.At(Clock(8, 0), cold_start).range, (Range{30, 90}));
  EXPECT_EQ(table.At(Clock(9, 0), cold_start).range, (Range{2, 20}));
  EXPECT_EQ(table.NextChange(Clock(7, 0), cold_start), Clock(7, 58, 30));
  EXPECT_EQ(table.At(Clock(7, 0), absl::Hours(5)).range, (Range{30, 30}));  // an hour at most
  EXPECT_EQ(table.At(Clock(6, 59), absl::Hours(5)).range, (Range{2, 20}));
}

TEST(ConstraintScheduleTest, RaisesNoFloorThatWillBeOutranked) {
  const ConstraintSchedule table = TableOf(
      "- {name: frugal, rank: 9, target: t, range: [1, 10]}\n"
      "- {name: peak, rank: 5, target: t, range: [30, 90], when: {from: '08:00', prewarm: 10m}}\n");
  EXPECT_EQ(table.At(Clock(7, 55), kNoColdStart).range, (Range{1, 10}));
  EXPECT_EQ(table.NextChange(Clock(7, 0), kNoColdStart), absl::InfiniteFuture());
}

TEST(ConstraintScheduleTest, KnowsWhenItsRulingChangesNext) {
  const ConstraintSchedule table = TableOf(
      "- {name: base, rank: 1, target: t, range: [2, 20]}\n"
      "- {name: none, rank: 0, target: t, range: [2, 30], when: {from: '07:30', for: 1m}}\n"
      "- {name: peak, rank: 9, target: t, range: [30, 90],"
      " when: {from: '08:00', for: 1h, prewarm: 10m}}\n");
  EXPECT_EQ(table.NextChange(Clock(7, 0), kNoColdStart), Clock(7, 50));
  EXPECT_EQ(table.NextChange(Clock(7, 50), kNoColdStart), Clock(8, 0));
  EXPECT_EQ(table.NextChange(Clock(8, 0), kNoColdStart), Clock(9, 0));
  EXPECT_EQ(table.NextChange(Clock(9, 0), kNoColdStart), Clock(7, 50) + absl::Hours(24));
}

TEST(BudgetAccountTest, CountsTheReplicaMinutesOfTheLastHour) {
  BudgetAccount account;
  account.Charge(Clock(8, 0), 10);
  account.Charge(Clock(8, 0, 30), 20);
  EXPECT_DOUBLE_EQ(account.Spent(), 5);
  account.Charge(Clock(8, 10, 30), 0);
  EXPECT_DOUBLE_EQ(account.Spent(), 205);
  account.Charge(Clock(9, 0, 59), 0);
  EXPECT_DOUBLE_EQ(account.Spent(), 205);
  account.Charge(Clock(9, 1), 0);
  EXPECT_DOUBLE_EQ(account.Spent(), 190);
  account.Charge(Clock(9, 11), 0);
  EXPECT_DOUBLE_EQ(account.Spent(), 0);
}

TEST(BudgetAccountTest, SurvivesGapsAndClocksThatStepBack) {
  BudgetAccount account;
  account.Charge(Clock(8, 0), 3);
  account.Charge(Clock(8, 0) + absl::Hours(24 * 3650), 1);
  EXPECT_NEAR(account.Spent(), 180, 3);
  account.Charge(Clock(8, 0), 1);
  EXPECT_NEAR(account.Spent(), 180, 3);
}

TEST(BudgetAccountTest, NeverLetsAFleetThatKeepsToItExceedTheBudget) {
  BudgetAccount account;
  double most = 0;
  int most_at_once = 0;
  for (int second = 0; second < 5 * 3600; ++second) {
    const int replicas = std::min(100, account.Affordable(900));
    account.Charge(Clock(0, 0) + absl::Seconds(second), replicas);
    most = std::max(most, account.Spent());
    most_at_once = std::max(most_at_once, replicas);
  }
  EXPECT_LE(most, 900);
  EXPECT_GT(most, 800);
  EXPECT_EQ(most_at_once, 100);
}

}  // namespace
}  // namespace muster::scaling::rules
