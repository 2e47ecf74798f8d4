// SPDX-License-Identifier: Apache-2.0
#include "muster/scaling/policy/hold_tuner.h"

#include "gtest/gtest.h"

namespace muster::scaling::policy {

namespace {

const absl::Time kTunerStart = absl::FromUnixSeconds(1'000'000);
constexpr absl::Duration kLongestHold = absl::Seconds(40);

absl::Time TunerSecond(double seconds) { return kTunerStart + absl::Seconds(seconds); }

TEST(HoldTunerTest, HoldsForAWholeColdStartBeforeItKnowsMore) {
  EXPECT_EQ(HoldTuner().Hold(kLongestHold), kLongestHold);
}

TEST(HoldTunerTest, LetsGoAtOnceWhereNobodyWasEverMissed) {
  HoldTuner tuner;
  for (int i = 0; i < 10; ++i) {
    tuner.LetGo(TunerSecond(i * 1000));
    tuner.See(TunerSecond(i * 1000 + 500), kLongestHold);
  }
  EXPECT_EQ(tuner.Hold(kLongestHold), absl::Seconds(2)) << "two looks";
}

TEST(HoldTunerTest, HoldsJustAsLongAsReplicasAreMissed) {
  HoldTuner tuner;
  for (int i = 0; i < 20; ++i) {
    tuner.Reused(TunerSecond(i * 100 + 10), TunerSecond(i * 100), true, kLongestHold);
    tuner.LetGo(TunerSecond(i * 100 + 20));
    tuner.See(TunerSecond(i * 100 + 90), kLongestHold);
  }
  EXPECT_EQ(tuner.Hold(kLongestHold), absl::Seconds(10));
}

TEST(HoldTunerTest, LearnsFromStartsThatItLetGoTooEarly) {
  HoldTuner tuner;
  for (int i = 0; i < 20; ++i) {
    tuner.LetGo(TunerSecond(i * 1000));
    tuner.See(TunerSecond(i * 1000 + 500), kLongestHold);
  }
  for (int i = 20; i < 60; ++i) {
    tuner.LetGo(TunerSecond(i * 1000));
    tuner.Started(TunerSecond(i * 1000 + 15), 1, kLongestHold);
  }
  EXPECT_EQ(tuner.Hold(kLongestHold), absl::Seconds(15));
}

TEST(HoldTunerTest, CountsReuseThatSavedNoStartAsIdleTimeOnly) {
  HoldTuner tuner;
  for (int i = 0; i < 20; ++i) {
    tuner.Reused(TunerSecond(i * 100 + 10), TunerSecond(i * 100), false, kLongestHold);
  }
  EXPECT_EQ(tuner.Hold(kLongestHold), absl::Seconds(2));
}

TEST(HoldTunerTest, NeverHoldsForLongerThanTheLongest) {
  HoldTuner tuner;
  EXPECT_EQ(tuner.Hold(absl::Seconds(1)), absl::Seconds(1));
  EXPECT_EQ(tuner.Hold(absl::ZeroDuration()), absl::ZeroDuration());
}

}  // namespace

}  // namespace muster::scaling::policy
