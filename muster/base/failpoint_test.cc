// SPDX-License-Identifier: Apache-2.0
#include "muster/base/failpoint.h"

#include <csignal>

#include "gtest/gtest.h"

namespace muster::base {
namespace {

void Pass(int times) {
  for (int i = 0; i < times; ++i) MUSTER_FAILPOINT("test.here");
}

void PassElsewhere() { MUSTER_FAILPOINT("test.elsewhere"); }

TEST(FailpointTest, IsPassedAsIfItWereNotThere) {
  Pass(3);
  EXPECT_FALSE(failpoints_armed);
}

TEST(FailpointTest, ActsOnceAtThePassageThatWasAskedFor) {
  int acted = 0;
  const ArmedFailpoint armed("test.here", 3, [&] { ++acted; });
  Pass(2);
  EXPECT_EQ(acted, 0);
  Pass(1);
  EXPECT_EQ(acted, 1);
  Pass(9);
  EXPECT_EQ(acted, 1);
}

TEST(FailpointTest, LeavesOtherFailpointsAlone) {
  bool acted = false;
  const ArmedFailpoint armed("test.here", 1, [&] { acted = true; });
  PassElsewhere();
  EXPECT_FALSE(acted);
}

TEST(FailpointTest, DoesNotActOnceItIsDisarmed) {
  bool acted = false;
  {
    const ArmedFailpoint armed("test.here", 1, [&] { acted = true; });
  }
  Pass(1);
  EXPECT_FALSE(acted);
}

TEST(FailpointDeathTest, KillsTheProcessAsTheEnvironmentAsks) {
  const auto die = [](const char* text) {
    EXPECT_TRUE(ArmFailpointToKill(text));
    Pass(2);
  };
  EXPECT_EXIT(die("test.here"), ::testing::KilledBySignal(SIGKILL), "");
  EXPECT_EXIT(die("test.here:2"), ::testing::KilledBySignal(SIGKILL), "");
}

TEST(FailpointTest, RefusesWhatNamesNoPassage) {
  for (const char* text : {":1", "test.here:0", "test.here:-1", "test.here:x", "test.here:1:2"}) {
    EXPECT_FALSE(ArmFailpointToKill(text)) << text;
  }
  EXPECT_FALSE(failpoints_armed);
}

}  // namespace
}  // namespace muster::base
