// SPDX-License-Identifier: Apache-2.0
#include "muster/scaling/policy/idle_hold.h"

#include <vector>

#include "gtest/gtest.h"

namespace muster::scaling::policy {

namespace {

const absl::Time kIdleStart = absl::FromUnixSeconds(1'000'000);
constexpr absl::Duration kIdleHold = absl::Seconds(30);

class IdleHoldTest : public ::testing::Test {
 protected:
  // Observes `ready` replicas, some of which have been idle since these seconds.
  int See(double now, int ready, std::vector<double> idle_since) {
    Fleet fleet;
    fleet.ready = ready;
    for (double since : idle_since) fleet.idle_since.push_back(kIdleStart + absl::Seconds(since));
    hold_.See(kIdleStart + absl::Seconds(now), fleet, kIdleHold);
    return hold_.Removable();
  }

  IdleHold hold_;
};

TEST_F(IdleHoldTest, LetsAReplicaGoAfterItHasIdledForTheHold) {
  EXPECT_EQ(See(0, 2, {0}), 0);
  EXPECT_EQ(See(29, 2, {0}), 0);
  EXPECT_EQ(See(30, 2, {0}), 1);
}

TEST_F(IdleHoldTest, LetsThoseGoThatWereNeverNeededAtOnceThoughEachWorkedNowAndThen) {
  // Six of ten replicas are busy at a time, and never the same ones.
  int removable = 0;
  for (int second = 0; second <= 31; ++second) {
    const double just_now = second - 0.5;
    removable = See(second, 10, {just_now, just_now, just_now, just_now});
    EXPECT_EQ(removable, second < 30 ? 0 : 4) << second;
  }
}

TEST_F(IdleHoldTest, KeepsOneWhereShortWorkComesBetweenTheLooks) {
  int removable = 0;
  for (int second = 0; second <= 60; second += 2) {
    removable = See(second, 3, {second - 0.5, -100, -100});
  }
  EXPECT_EQ(removable, 2);
}

TEST_F(IdleHoldTest, LooksAnewWhenAReplicaCame) {
  for (int second = 0; second <= 40; ++second) See(second, 2, {});
  EXPECT_EQ(See(41, 5, {41, 41, 41}), 0);
  EXPECT_EQ(See(60, 5, {41, 41, 41}), 0);
  EXPECT_EQ(See(71, 5, {41, 41, 41}), 3);
}

TEST_F(IdleHoldTest, SaysTheSameAgainWhenItWasCarriedOut) {
  See(0, 3, {0, 0});
  EXPECT_EQ(See(30, 3, {0, 0}), 2);
  EXPECT_EQ(See(30, 1, {}), 0);
}

TEST_F(IdleHoldTest, BelievesNoIdlenessThatBeginsInTheFuture) {
  See(0, 1, {100});
  EXPECT_EQ(See(40, 1, {100}), 0);
}

}  // namespace

}  // namespace muster::scaling::policy
