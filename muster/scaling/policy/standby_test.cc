// SPDX-License-Identifier: Apache-2.0
#include "muster/scaling/policy/standby.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::scaling::policy {
namespace {

using ::testing::ElementsAre;

absl::Time Second(int second) { return absl::FromUnixSeconds(second); }

Fleet SixReady() {
  Fleet fleet;
  fleet.ready = 6;
  fleet.idle_since = {Second(1), Second(2), Second(3)};
  fleet.starting = {Second(7), Second(8), Second(9)};
  return fleet;
}

TEST(ParkTest, TheLongestIdleOnesAreOnStandby) {
  Fleet fleet = SixReady();
  Park(2, &fleet);
  EXPECT_EQ(fleet.parked, 2);
  EXPECT_EQ(fleet.ready, 4);
  EXPECT_THAT(fleet.idle_since, ElementsAre(Second(3)));
  EXPECT_EQ(fleet.starting.size(), 3u);
}

TEST(ParkTest, StartingOnesFillAStandbyThatIdleOnesDoNot) {
  Fleet fleet = SixReady();
  Park(5, &fleet);
  EXPECT_EQ(fleet.parked, 3);
  EXPECT_EQ(fleet.ready, 3);
  EXPECT_THAT(fleet.starting, ElementsAre(Second(7)));
  fleet = SixReady();
  Park(100, &fleet);
  EXPECT_TRUE(fleet.starting.empty());
  EXPECT_EQ(fleet.ready, 3) << "those at work are not on standby";
}

// Wants what there is, and some on standby: as long as it counted these as well, it wanted more at
// each look.
class Keeper final : public Policy {
 public:
  void Announce(const Announcement&) override {}
  Decision Decide(const Observation& seen) override {
    Decision decision;
    decision.replicas = seen.fleet.committed();
    decision.standby = 4;
    return decision;
  }
};

TEST(DecideWithStandbyTest, ADecisionThatWasCarriedOutIsFollowedByTheSame) {
  Keeper policy;
  Observation seen;
  seen.now = Second(10);
  seen.fleet.ready = 6;
  seen.fleet.idle_since.assign(5, Second(1));
  int standby = 0;
  for (int look = 0; look < 3; ++look) {
    const Decision decision = DecideWithStandby(seen, &policy, &standby);
    EXPECT_EQ(decision.replicas + decision.standby, 6);
    EXPECT_EQ(standby, 4);
  }
}

}  // namespace
}  // namespace muster::scaling::policy
