// SPDX-License-Identifier: Apache-2.0
#include "muster/handler/command/watchdog.h"

#include <poll.h>
#include <pthread.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/base/fake_clock.h"

namespace muster::handler::command {

namespace {

using State = Watchdog::State;

class WatchdogTest : public testing::Test {
 protected:
  bool IsReadable() const {
    pollfd event{watchdog_.fd(), POLLIN, 0};
    return poll(&event, 1, 0) == 1;
  }
  void ArmIn(absl::Duration delay) { watchdog_.Arm(clock_.Monotonic() + delay); }

  base::FakeClock clock_;
  const std::unique_ptr<Watchdog> owned_ = *Watchdog::Create(&clock_);
  Watchdog& watchdog_ = *owned_;
};

TEST_F(WatchdogTest, IsRefusedWhenThereIsNoThreadForIt) {
  pthread_attr_t usual;
  pthread_attr_t gigantic;
  ASSERT_EQ(pthread_getattr_default_np(&usual), 0);
  pthread_attr_init(&gigantic);
  pthread_attr_setstacksize(&gigantic, size_t{1} << 47);
  ASSERT_EQ(pthread_setattr_default_np(&gigantic), 0);
  EXPECT_EQ(Watchdog::Create(&clock_).status().code(), absl::StatusCode::kResourceExhausted);
  ASSERT_EQ(pthread_setattr_default_np(&usual), 0);
}

TEST_F(WatchdogTest, BarksAtItsDeadline) {
  ArmIn(absl::Seconds(5));
  EXPECT_EQ(watchdog_.state(), State::kQuiet);
  EXPECT_FALSE(IsReadable());
  clock_.Advance(absl::Seconds(5));
  EXPECT_EQ(watchdog_.Await(), State::kDeadline);
  EXPECT_TRUE(IsReadable());
}

TEST_F(WatchdogTest, TakesAnEarlierDeadline) {
  ArmIn(absl::Seconds(50));
  clock_.AwaitSleepers(1);
  ArmIn(absl::Seconds(5));
  clock_.Advance(absl::Seconds(5));
  EXPECT_EQ(watchdog_.Await(), State::kDeadline);
}

TEST_F(WatchdogTest, IsQuietAgainWhenArmedAnew) {
  ArmIn(absl::Seconds(5));
  clock_.Advance(absl::Seconds(5));
  EXPECT_EQ(watchdog_.Await(), State::kDeadline);
  ArmIn(absl::Seconds(5));
  EXPECT_EQ(watchdog_.state(), State::kQuiet);
  EXPECT_FALSE(IsReadable());
  clock_.Advance(absl::Seconds(5));
  EXPECT_EQ(watchdog_.Await(), State::kDeadline);
}

TEST_F(WatchdogTest, ForgetsADeadlineWhenDisarmed) {
  ArmIn(absl::Seconds(5));
  watchdog_.Disarm();
  clock_.Advance(absl::Seconds(5));
  ArmIn(absl::Seconds(1));
  clock_.AwaitSleepers(1);
  EXPECT_EQ(watchdog_.state(), State::kQuiet);
}

TEST_F(WatchdogTest, IsInterruptedAtOnceAndUntilDisarmed) {
  watchdog_.Interrupt();
  EXPECT_EQ(watchdog_.Await(), State::kInterrupted);
  EXPECT_TRUE(IsReadable());
  ArmIn(absl::Seconds(5));
  EXPECT_EQ(watchdog_.state(), State::kInterrupted);
  watchdog_.Disarm();
  EXPECT_EQ(watchdog_.state(), State::kQuiet);
  EXPECT_FALSE(IsReadable());
}

}  // namespace

}  // namespace muster::handler::command
