// SPDX-License-Identifier: Apache-2.0
#include "services/scaling-agent/periodic_thread.h"

#include "gtest/gtest.h"
#include "muster/base/mutex.h"
#include "tests/fakes/base/fake_clock.h"

namespace muster::scaling_agent {
namespace {

class PeriodicThreadTest : public ::testing::Test {
 protected:
  void Step() {
    base::MutexLock lock(&mu_);
    ++steps_;
    changed_.NotifyAll();
  }
  // Waits until it sleeps after so many steps.
  void AwaitSteps(int count) {
    {
      base::MutexLock lock(&mu_);
      while (steps_ < count) changed_.Wait(&mu_);
      EXPECT_EQ(steps_, count);
    }
    clock_.AwaitSleepers(1);
  }

  base::FakeClock clock_;
  base::Mutex mu_;
  base::CondVar changed_;
  int steps_ ABSL_GUARDED_BY(mu_) = 0;
  PeriodicThread thread_{{absl::Seconds(1), absl::Milliseconds(50)}, [this] { Step(); }, &clock_};
};

TEST_F(PeriodicThreadTest, StepsAtOnceAndThenOnceAPeriod) {
  thread_.Start();
  AwaitSteps(1);
  clock_.Advance(absl::Milliseconds(999));
  AwaitSteps(1);
  clock_.Advance(absl::Milliseconds(1));
  AwaitSteps(2);
}

TEST_F(PeriodicThreadTest, StepsSoonWhenItIsWokenButNotTooOften) {
  thread_.Start();
  AwaitSteps(1);
  clock_.Advance(absl::Milliseconds(20));
  for (int i = 0; i < 10; ++i) thread_.Wake();
  clock_.AwaitSleepers(1);
  while (clock_.NextDeadline() > clock_.Monotonic() + absl::Milliseconds(30)) continue;
  clock_.Advance(absl::Milliseconds(30));
  AwaitSteps(2);
}

TEST_F(PeriodicThreadTest, GathersWhatComesTogetherForOneStep) {
  PeriodicThread gathering(
      {absl::Seconds(1), absl::Milliseconds(50), absl::Milliseconds(100)}, [this] { Step(); },
      &clock_);
  gathering.Start();
  AwaitSteps(1);
  // Just before the period's end.
  clock_.Advance(absl::Milliseconds(990));
  const absl::Duration due = clock_.Monotonic() + absl::Milliseconds(100);
  for (int i = 0; i < 4; ++i) {
    gathering.Wake();
    while (clock_.NextDeadline() != due) continue;
    clock_.Advance(absl::Milliseconds(25));
  }
  AwaitSteps(2);
  gathering.Stop();
}

TEST_F(PeriodicThreadTest, AWakeBeforeTheStartIsNoExtraStep) {
  thread_.Wake();
  thread_.Start();
  thread_.Start();
  AwaitSteps(1);
}

TEST_F(PeriodicThreadTest, StopsWhileItSleepsTwiceAndBeforeItsStart) {
  PeriodicThread never(
      {absl::Seconds(1)}, [] { FAIL(); }, &clock_);
  never.Stop();
  thread_.Start();
  AwaitSteps(1);
  thread_.Stop();
  thread_.Stop();
}

}  // namespace
}  // namespace muster::scaling_agent
