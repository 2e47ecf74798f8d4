// SPDX-License-Identifier: Apache-2.0
#include "muster/scaling/policy/idle_replicas.h"

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
