// SPDX-License-Identifier: Apache-2.0
#include "muster/listener/supervisor.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/base/fake_clock.h"

namespace muster::listener {
namespace {

using ::testing::ElementsAre;

class SupervisorTest : public ::testing::Test {
 protected:
  std::vector<WakeReason> AwaitWakes(size_t n) {
    base::MutexLock lock(&mu_);
    while (wakes_.size() < n) changed_.Wait(&mu_);
    return wakes_;
  }

  base::FakeClock clock_;
  base::Mutex mu_;
  base::CondVar changed_;
  std::vector<WakeReason> wakes_ ABSL_GUARDED_BY(mu_);
  Supervisor supervisor_{{.safety_check_interval = absl::Seconds(30)},
                         &clock_,
                         [] { return 0.5; },  // no jitter
                         [this](WakeReason reason) {
                           base::MutexLock lock(&mu_);
                           wakes_.push_back(reason);
                           changed_.NotifyAll();
                         }};
};

TEST_F(SupervisorTest, ChecksAtOnceAndThenOncePerInterval) {
  supervisor_.Start();
  AwaitWakes(1);
  clock_.AwaitSleepers(1);
  EXPECT_EQ(clock_.NextDeadline() - clock_.Monotonic(), absl::Seconds(30));
  clock_.Advance(absl::Seconds(30));
  EXPECT_THAT(AwaitWakes(2), ElementsAre(WakeReason::kSafety, WakeReason::kSafety));
}

TEST_F(SupervisorTest, FollowsATriggerAtOnce) {
  supervisor_.Wake(WakeReason::kPush);
  EXPECT_THAT(AwaitWakes(1), ElementsAre(WakeReason::kPush));
}

TEST_F(SupervisorTest, SpacesRescalesButDropsNone) {
  supervisor_.Wake(WakeReason::kRescale);
  AwaitWakes(1);
  supervisor_.Wake(WakeReason::kRescale);
  supervisor_.Wake(WakeReason::kRescale);
  clock_.AwaitSleepers(1);
  EXPECT_EQ(AwaitWakes(0).size(), 1);
  clock_.Advance(absl::Milliseconds(10));
  EXPECT_THAT(AwaitWakes(2), ElementsAre(WakeReason::kRescale, WakeReason::kRescale));
}

TEST_F(SupervisorTest, WakesWhenADelayRunsOutOnceForDelaysThatAreClose) {
  supervisor_.WakeIn(absl::Milliseconds(500));
  supervisor_.WakeIn(absl::Milliseconds(499));
  supervisor_.WakeIn(absl::Seconds(5));
  clock_.AwaitSleepers(1);
  clock_.Advance(absl::Milliseconds(500));
  EXPECT_THAT(AwaitWakes(1), ElementsAre(WakeReason::kScheduled));
  clock_.AwaitSleepers(1);
  EXPECT_EQ(clock_.NextDeadline() - clock_.Monotonic(), absl::Milliseconds(4500));
}

TEST_F(SupervisorTest, TellsDelaysApartByWhatTheyAreFor) {
  supervisor_.WakeIn(absl::Milliseconds(500));
  supervisor_.WakeIn(absl::Milliseconds(500), WakeReason::kAnnounce);
  supervisor_.WakeIn(absl::Milliseconds(480), WakeReason::kAnnounce);
  clock_.AwaitSleepers(1);
  clock_.Advance(absl::Milliseconds(500));
  EXPECT_THAT(AwaitWakes(2), ElementsAre(WakeReason::kAnnounce, WakeReason::kScheduled));
}

TEST_F(SupervisorTest, RemembersABoundedNumberOfDelaysTheSoonestFirst) {
  for (int i = 5000; i > 0; --i) supervisor_.WakeIn(absl::Seconds(i));
  supervisor_.WakeIn(absl::Hours(100));
  clock_.AwaitSleepers(1);
  clock_.Advance(absl::Seconds(1));
  EXPECT_THAT(AwaitWakes(1), ElementsAre(WakeReason::kScheduled));
}

TEST_F(SupervisorTest, StopsTwiceAndIgnoresWhatComesAfter) {
  supervisor_.Stop();
  supervisor_.Stop();
  supervisor_.Wake(WakeReason::kPush);
  supervisor_.WakeIn(absl::ZeroDuration());
  EXPECT_TRUE(AwaitWakes(0).empty());
}

}  // namespace
}  // namespace muster::listener
