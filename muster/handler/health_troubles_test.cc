// SPDX-License-Identifier: Apache-2.0
#include "muster/handler/health_troubles.h"

#include <string>

#include "gtest/gtest.h"

namespace muster::handler {
namespace {

TEST(TroubleTest, IsUnknownAtFirst) {
  const HealthTroubles health;
  EXPECT_EQ(health.why(), "");
  EXPECT_FALSE(health.works());
}

TEST(TroubleTest, LastsUntilAHandlerWorks) {
  HealthTroubles health;
  health.Note("it is down");
  EXPECT_EQ(health.why(), "it is down");
  health.Works();
  EXPECT_EQ(health.why(), "");
  EXPECT_TRUE(health.works());
  health.Note("it is down again");
  EXPECT_EQ(health.why(), "it is down again");
  EXPECT_FALSE(health.works());
}

TEST(TroubleTest, FitsOnALineHoweverMuchIsSaid) {
  HealthTroubles health;
  health.Note("two\nlines\x1b[31m" + std::string(1 << 20, 'x'));
  EXPECT_EQ(health.why().size(), kMaxTroubleBytes);
  EXPECT_EQ(health.why().substr(0, 15), "two?lines?[31mx");
  health.SetProbe([] { return "a\n" + std::string(1 << 20, 'y'); });
  health.Works();
  EXPECT_EQ(health.why().size(), kMaxTroubleBytes);
  EXPECT_EQ(health.why().substr(0, 3), "a?y");
}

TEST(TroubleTest, AsksItsProbeWhileNothingIsNoted) {
  HealthTroubles health;
  std::string found = "nobody answers";
  health.SetProbe([&] { return found; });
  EXPECT_EQ(health.why(), "nobody answers");
  health.Note("it refuses");
  EXPECT_EQ(health.why(), "it refuses");
  health.Works();
  found = "";
  EXPECT_EQ(health.why(), "");
}

TEST(TroubleTest, TellsOfTheOldestSlowCallUntilItEnds) {
  HealthTroubles health;
  health.NoteSlow(7, "item 1/7 takes long");
  health.NoteSlow(8, "item 1/8 takes long");
  EXPECT_EQ(health.why(), "item 1/7 takes long");
  health.Works();
  EXPECT_EQ(health.why(), "item 1/7 takes long") << "another handler works";
  health.Note("it fails");
  EXPECT_EQ(health.why(), "it fails");
  health.Works();
  health.EndSlow(7);
  EXPECT_EQ(health.why(), "item 1/8 takes long");
  health.EndSlow(8);
  health.EndSlow(9);
  EXPECT_EQ(health.why(), "");
}

TEST(TroubleTest, TellsOfItemsThatFailWhileTheHandlerAnswers) {
  HealthTroubles health;
  health.NoteSlow(7, "item 1/7 takes long");
  health.NoteFailing("no item has a result");
  health.Works();
  EXPECT_EQ(health.why(), "no item has a result");
  health.Note("it is down");
  EXPECT_EQ(health.why(), "it is down");
  health.Works();
  health.EndFailing();
  EXPECT_EQ(health.why(), "item 1/7 takes long");
}

}  // namespace
}  // namespace muster::handler
