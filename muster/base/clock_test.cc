// SPDX-License-Identifier: Apache-2.0
#include "muster/base/clock.h"

#include <thread>

#include "gtest/gtest.h"
#include "tests/fakes/base/fake_clock.h"

namespace muster::base {
namespace {

// Each look at it takes a second: a process that is paused between any two of its readings.
class SlowClock final : public Clock {
 public:
  absl::Time Now() const override { return Pass(), clock_.Now(); }
  absl::Duration Monotonic() const override { return Pass(), clock_.Monotonic(); }
  bool WaitUntil(CondVar* cv, Mutex* mu, absl::Duration deadline) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    return clock_.WaitUntil(cv, mu, deadline);
  }

 private:
  void Pass() const { clock_.Advance(absl::Seconds(1)); }

  mutable FakeClock clock_;
};

TEST(MonotonicAtTest, IsNeverLateForTheTimeThatItTookToTell) {
  const FakeClock still;
  EXPECT_EQ(MonotonicAt(still, still.Now() + absl::Minutes(5)),
            still.Monotonic() + absl::Minutes(5));
  EXPECT_EQ(MonotonicAt(still, absl::InfiniteFuture()), absl::InfiniteDuration());

  const SlowClock slow;
  const absl::Time start = slow.Now();
  const absl::Duration due = MonotonicAt(slow, start + absl::Minutes(5));
  const absl::Duration lapse = slow.Now() - start;
  const absl::Duration monotonic_at_start = slow.Monotonic() - lapse - absl::Seconds(1);
  EXPECT_LE(due, monotonic_at_start + absl::Minutes(5));
}

class SleepTest : public ::testing::Test {
 protected:
  void StartSleep(absl::Duration duration) {
    sleeper_ = std::thread([this, duration] {
      slept_to_the_end_ = SleepUnlessStopped(&clock_, duration, stop_.get_token());
    });
  }

  bool SleptToTheEnd() {
    sleeper_.join();
    return slept_to_the_end_;
  }

  FakeClock clock_;
  std::stop_source stop_;
  std::thread sleeper_;
  bool slept_to_the_end_ = false;
};

TEST_F(SleepTest, EndsWhenItsTimeHasPassed) {
  StartSleep(absl::Minutes(10));
  clock_.AwaitSleepers(1);
  clock_.Advance(absl::Minutes(9));
  clock_.AwaitSleepers(1);
  clock_.Advance(absl::Minutes(1));
  EXPECT_TRUE(SleptToTheEnd());
}

TEST_F(SleepTest, IsEndedByAStop) {
  StartSleep(absl::Hours(24));
  clock_.AwaitSleepers(1);
  stop_.request_stop();
  EXPECT_FALSE(SleptToTheEnd());
}

TEST_F(SleepTest, DoesNotBeginAfterAStop) {
  stop_.request_stop();
  StartSleep(absl::Hours(24));
  EXPECT_FALSE(SleptToTheEnd());
}

TEST_F(SleepTest, TakesNoTimeForNothing) {
  EXPECT_TRUE(SleepUnlessStopped(&clock_, absl::ZeroDuration(), stop_.get_token()));
  EXPECT_TRUE(SleepUnlessStopped(&clock_, -absl::Seconds(1), stop_.get_token()));
}

// A stop and the passing of time may coincide; the clock must not touch a sleeper that is gone.
TEST_F(SleepTest, SurvivesAStopWhileTimePasses) {
  for (int i = 0; i < 200; ++i) {
    std::stop_source stop;
    std::thread sleeper([&] { SleepUnlessStopped(&clock_, absl::Seconds(1), stop.get_token()); });
    clock_.AwaitSleepers(1);
    stop.request_stop();
    clock_.Advance(absl::Seconds(1));
    sleeper.join();
  }
}

// Races the stop against the start of a sleep on the machine's clock: the sleeper must not miss the
// stop.
TEST_F(SleepTest, NeverMissesAStop) {
  for (int i = 0; i < 200; ++i) {
    std::stop_source stop;
    std::thread sleeper(
        [&] { SleepUnlessStopped(RealClock(), absl::InfiniteDuration(), stop.get_token()); });
    stop.request_stop();
    sleeper.join();
  }
}

}  // namespace
}  // namespace muster::base
