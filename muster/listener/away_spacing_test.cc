// SPDX-License-Identifier: Apache-2.0
#include "muster/listener/away_spacing.h"

#include "gtest/gtest.h"
#include "tests/fakes/base/fake_clock.h"

namespace muster::listener {
namespace {

TEST(AwaySpacingTest, LetsThousandsComeAgainAtABoundedRateAndAFewAtOnce) {
  base::FakeClock clock;
  AwaySpacing away(&clock);
  EXPECT_EQ(away.Next(), absl::ZeroDuration());
  for (int i = 1; i < 5000; ++i) EXPECT_EQ(away.Next(), AwaySpacing::kSpacing * i);
  clock.Advance(absl::Seconds(10));
  EXPECT_EQ(away.Next(), absl::Seconds(10)) << "behind those that are away still";
  for (int i = 0; i < 100'000; ++i) EXPECT_LE(away.Next(), AwaySpacing::kMost);
  clock.Advance(absl::Hours(1));
  EXPECT_EQ(away.Next(), absl::ZeroDuration()) << "no message is away";
}

TEST(AwaySpacingTest, SpacesMessagesByATimeOfWhichTheyTakeOnlyAPart) {
  base::FakeClock clock;
  AwaySpacing away(&clock);
  for (int i = 0; i < 50; ++i) away.Observe(32, 32 * absl::Milliseconds(10));
  (void)away.Next();
  EXPECT_GT(away.Next(), 0.99 * AwaySpacing::kShare * absl::Milliseconds(10));
  EXPECT_LT(away.Next(), 2.01 * AwaySpacing::kShare * absl::Milliseconds(10));
}

TEST(AwaySpacingTest, SpacesMessagesNoWiderForWhatATaskWaitedForAndNoCloserThanItMay) {
  base::FakeClock clock;
  AwaySpacing away(&clock);
  for (int i = 0; i < 50; ++i) away.Observe(1, absl::Hours(1));
  (void)away.Next();
  EXPECT_LE(away.Next(), AwaySpacing::kMostSpacing);
  for (int i = 0; i < 50; ++i) away.Observe(32, absl::Milliseconds(1));
  const absl::Duration before = away.Next();
  EXPECT_LT(away.Next() - before, AwaySpacing::kSpacing + absl::Milliseconds(1));
}

}  // namespace
}  // namespace muster::listener
