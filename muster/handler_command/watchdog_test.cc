#include "muster/handler_command/watchdog.h"

#include <poll.h>

#include "gtest/gtest.h"
#include "muster/base/fake_clock.h"

namespace muster::handler_command {
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
  Watchdog watchdog_{&clock_};
};

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
}  // namespace muster::handler_command
