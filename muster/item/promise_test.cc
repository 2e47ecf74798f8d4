// SPDX-License-Identifier: Apache-2.0
#include "muster/item/promise.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::item {
namespace {

constexpr absl::Time kBegin = absl::UnixEpoch();

ledger::Batch Promised(absl::Duration sla, std::optional<absl::Duration> ended = std::nullopt) {
  ledger::Batch batch;
  batch.created = kBegin;
  batch.sla = sla;
  batch.state = ended.has_value() ? ledger::BatchState::kComplete : ledger::BatchState::kSealed;
  if (ended.has_value()) batch.completed = kBegin + *ended;
  return batch;
}

PromiseState After(absl::Duration lapse, int64_t counted) {
  return *StateOfPromise(Promised(absl::Seconds(100)), 1000, counted, kBegin + lapse);
}

TEST(PromiseTest, IsNoneWhereNothingWasPromised) {
  EXPECT_EQ(StateOfPromise(ledger::Batch(), 10, 0, kBegin), std::nullopt);
}

TEST(PromiseTest, IsKeptByABatchThatEndsAtItsDeadline) {
  const auto kept = *StateOfPromise(Promised(absl::Seconds(30), absl::Seconds(30)), 10, 10,
                                    kBegin + absl::Hours(1));
  EXPECT_EQ(kept.deadline, kBegin + absl::Seconds(30));
  EXPECT_EQ(kept.late_by, absl::ZeroDuration());
  EXPECT_FALSE(kept.at_risk);
}

TEST(PromiseTest, SaysByHowMuchABatchWasLateHoweverLateItIsAsked) {
  const auto late = *StateOfPromise(Promised(absl::Seconds(30), absl::Milliseconds(42'345)), 10, 10,
                                    kBegin + absl::Hours(1));
  EXPECT_EQ(late.late_by, absl::Milliseconds(12'345));
  EXPECT_FALSE(late.at_risk) << "it is over";
  EXPECT_EQ(ShowLateness(late), "12.4s later than promised (30s)");
}

TEST(PromiseTest, IsAtRiskOnceThePaceDoesNotSuffice) {
  EXPECT_FALSE(After(absl::Seconds(50), 500).at_risk);
  EXPECT_TRUE(After(absl::Seconds(50), 499).at_risk);
}

TEST(PromiseTest, IsAtRiskWithNothingCountedAfterHalfOfTheTime) {
  EXPECT_FALSE(After(absl::Seconds(50), 0).at_risk);
  EXPECT_TRUE(After(absl::Seconds(50) + absl::Nanoseconds(1), 0).at_risk);
}

TEST(PromiseTest, GrowsLaterWhileABatchIsOpen) {
  EXPECT_EQ(After(absl::Seconds(100), 999).late_by, absl::ZeroDuration());
  EXPECT_EQ(After(absl::Seconds(107), 999).late_by, absl::Seconds(7));
  EXPECT_TRUE(After(absl::Seconds(107), 1000).at_risk) << "not complete yet";
}

}  // namespace
}  // namespace muster::item
