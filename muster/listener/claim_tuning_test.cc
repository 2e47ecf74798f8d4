// SPDX-License-Identifier: Apache-2.0
#include "muster/listener/claim_tuning.h"

#include "gtest/gtest.h"

namespace muster::listener {

namespace {

TEST(ClaimSizerTest, ClaimsOneWhileNothingIsKnown) {
  EXPECT_EQ(ClaimSizer(absl::Milliseconds(100)).Claim(32), 1);
}

TEST(ClaimSizerTest, DoublesUpToTheBatchSizeWhileWorkIsQuick) {
  ClaimSizer sizer(absl::Milliseconds(100));
  for (const int expected : {1, 2, 4, 8, 16, 32, 32}) {
    ASSERT_EQ(sizer.Claim(32), expected);
    sizer.Observe(expected, absl::Microseconds(10) * expected);
  }
}

TEST(ClaimSizerTest, ClaimsOnlyWhatItWillStartWithinTheHorizon) {
  ClaimSizer sizer(absl::Milliseconds(100));
  sizer.Observe(32, absl::Milliseconds(640));  // 20 ms each
  EXPECT_EQ(sizer.Claim(32), 5);
}

TEST(ClaimSizerTest, ClaimsOneOfWhatTakesLongerThanTheHorizon) {
  ClaimSizer sizer(absl::Milliseconds(100));
  sizer.Observe(1, absl::Hours(1));
  EXPECT_EQ(sizer.Claim(32), 1);
}

TEST(ClaimSizerTest, FollowsAChangeOfPaceWithinAFewBatches) {
  ClaimSizer sizer(absl::Milliseconds(100));
  sizer.Observe(32, absl::ZeroDuration());
  EXPECT_EQ(sizer.Claim(32), 32);
  for (int batch = 0; batch < 8; ++batch) sizer.Observe(32, absl::Seconds(32));
  EXPECT_EQ(sizer.Claim(32), 1);
}

class VisibilityTunerTest : public ::testing::Test {
 protected:
  void Observe(int times, absl::Duration held) {
    for (int i = 0; i < times; ++i) tuner_.Observe(held);
  }

  VisibilityTuner tuner_{absl::Seconds(30), absl::Minutes(15)};
};

TEST_F(VisibilityTunerTest, BeginsWithTheLeast) {
  EXPECT_EQ(tuner_.Visibility(), absl::Seconds(30));
}

TEST_F(VisibilityTunerTest, StaysAtTheLeastWhileMessagesAreHeldForMoments) {
  Observe(10'000, absl::Milliseconds(3));
  EXPECT_EQ(tuner_.Visibility(), absl::Seconds(30));
}

TEST_F(VisibilityTunerTest, GivesThreeTimesWhatNearlyAllMessagesAreHeldFor) {
  Observe(1280, absl::Seconds(40));
  EXPECT_GE(tuner_.Visibility(), absl::Seconds(120));
  EXPECT_LE(tuner_.Visibility(), absl::Seconds(120) * 1.2) << "a bucket is a fifth wide";
}

TEST_F(VisibilityTunerTest, LetsOneInAHundredTakeLonger) {
  for (int i = 0; i < 1280; ++i) tuner_.Observe(i % 128 == 0 ? absl::Hours(1) : absl::Seconds(20));
  EXPECT_LE(tuner_.Visibility(), absl::Seconds(75));
}

TEST_F(VisibilityTunerTest, NeverExceedsTheMost) {
  Observe(1280, absl::Hours(24 * 30));
  EXPECT_EQ(tuner_.Visibility(), absl::Minutes(15));
  for (int i = 0; i < 100; ++i) tuner_.ObserveLost();
  EXPECT_EQ(tuner_.Visibility(), absl::Minutes(15));
}

TEST_F(VisibilityTunerTest, ForgetsHowItWasBefore) {
  Observe(1280, absl::Minutes(2));
  Observe(20'000, absl::Milliseconds(1));
  EXPECT_EQ(tuner_.Visibility(), absl::Seconds(30));
}

TEST_F(VisibilityTunerTest, DoublesWithEachLostLeaseAndComesBackWhenNoneIsLost) {
  tuner_.ObserveLost();
  EXPECT_EQ(tuner_.Visibility(), absl::Seconds(60));
  tuner_.ObserveLost();
  EXPECT_EQ(tuner_.Visibility(), absl::Seconds(120));
  Observe(1000, absl::Milliseconds(1));
  EXPECT_EQ(tuner_.Visibility(), absl::Seconds(60));
  Observe(2000, absl::Milliseconds(1));
  EXPECT_EQ(tuner_.Visibility(), absl::Seconds(30));
}

}  // namespace

}  // namespace muster::listener
