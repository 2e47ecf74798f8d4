// SPDX-License-Identifier: Apache-2.0
#include "muster/listener/task_roster.h"

#include <atomic>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/base/let_others_run.h"

namespace muster::listener {
namespace {

using Departure = TaskRoster::Departure;

class TaskRosterTest : public ::testing::Test {
 protected:
  base::FakeClock clock_;
  TaskRoster roster_{&clock_, 8};
};

TEST_F(TaskRosterTest, AdmitsNoMoreThanTheMaximum) {
  EXPECT_EQ(roster_.Enter(5), 5);
  EXPECT_EQ(roster_.Enter(5), 3);
  EXPECT_EQ(roster_.Enter(1), 0);
  EXPECT_EQ(roster_.most_active(), 8);
}

// All tasks find the queue empty at the same moment, and each sees the others.
TEST_F(TaskRosterTest, LetsAllLeaveButOneHoweverTheyRace) {
  for (int round = 0; round < 300; ++round) {
    ASSERT_EQ(roster_.Enter(4), 4);
    std::atomic<int> stayed = 0;
    std::atomic<int> ready = 0;
    std::vector<std::thread> tasks;
    for (int i = 0; i < 4; ++i) {
      tasks.emplace_back([&] {
        const uint64_t seen = roster_.wakes();
        ++ready;
        while (ready < 4) base::LetOthersRun();
        if (roster_.TryLeave(seen, true) == Departure::kStay) ++stayed;
      });
    }
    for (std::thread& task : tasks) task.join();
    ASSERT_EQ(stayed, 1);
    ASSERT_EQ(roster_.active(), 1);
    roster_.Leave();
  }
}

TEST_F(TaskRosterTest, LetsNobodyLeavePastAWakeUp) {
  roster_.Enter(1);
  const uint64_t seen = roster_.wakes();
  roster_.Wake(1);
  EXPECT_EQ(roster_.TryLeave(seen, false), Departure::kPollAgain);
  EXPECT_EQ(roster_.TryLeave(roster_.wakes(), false), Departure::kLeft);
  EXPECT_EQ(roster_.Wake(1), 0);
}

TEST_F(TaskRosterTest, DoesNotSleepPastAWakeUp) {
  roster_.Enter(1);
  const uint64_t seen = roster_.wakes();
  roster_.Wake(1);
  roster_.Sleep(absl::Hours(1), seen);  // returns, or the test hangs
}

TEST_F(TaskRosterTest, WakesAsManySleepersAsThereIsWork) {
  roster_.Enter(3);
  std::atomic<int> woken = 0;
  std::vector<std::thread> tasks;
  for (int i = 0; i < 3; ++i) {
    tasks.emplace_back([&] {
      roster_.Sleep(absl::Hours(1), 0);
      ++woken;
    });
  }
  clock_.AwaitSleepers(3);
  roster_.Wake(2);
  clock_.AwaitSleepers(1);
  clock_.Advance(absl::Hours(1));
  for (std::thread& task : tasks) task.join();
  EXPECT_EQ(woken, 3);
}

TEST_F(TaskRosterTest, SendsSleepersHomeAtOnce) {
  roster_.Enter(1);
  std::thread task([&] { roster_.Sleep(absl::InfiniteDuration(), 0); });
  roster_.Dismiss();
  task.join();
  EXPECT_EQ(roster_.TryLeave(0, true), Departure::kLeft);
  EXPECT_EQ(roster_.Enter(1), 0);
  roster_.Recall();
  EXPECT_EQ(roster_.Enter(1), 1);
}

TEST_F(TaskRosterTest, LetsATaskGoHomeOnlyWhileItIsDismissed) {
  roster_.Enter(1);
  EXPECT_FALSE(roster_.LeaveIfDismissed());
  roster_.Dismiss();
  roster_.Recall();
  EXPECT_FALSE(roster_.LeaveIfDismissed());
  roster_.Dismiss();
  EXPECT_TRUE(roster_.LeaveIfDismissed());
  EXPECT_EQ(roster_.active(), 0);
}

TEST_F(TaskRosterTest, SendsHomeThoseThatHaveBecomeTooMany) {
  roster_.Enter(3);
  roster_.SetMaxTasks(2);
  EXPECT_TRUE(roster_.LeaveIfDismissed());
  EXPECT_FALSE(roster_.LeaveIfDismissed());
  EXPECT_EQ(roster_.Enter(5), 0);
  roster_.SetMaxTasks(4);
  EXPECT_EQ(roster_.Enter(5), 2);
}

TEST_F(TaskRosterTest, WakesASleeperThatHasBecomeTooMany) {
  roster_.Enter(2);
  std::thread task([&] { roster_.Sleep(absl::Hours(1), 0); });
  clock_.AwaitSleepers(1);
  roster_.SetMaxTasks(1);
  task.join();
  EXPECT_TRUE(roster_.LeaveIfDismissed());
}

TEST_F(TaskRosterTest, WaitsForTheLastToLeaveUntilTheDeadline) {
  roster_.Enter(1);
  EXPECT_FALSE(roster_.AwaitNone(clock_.Monotonic()));
  roster_.Leave();
  EXPECT_TRUE(roster_.AwaitNone(absl::InfiniteDuration()));
}

using TaskRosterDeathTest = TaskRosterTest;

TEST_F(TaskRosterDeathTest, NoMoreTasksLeaveThanHaveEntered) {
  EXPECT_EQ(roster_.Enter(1), 1);
  roster_.Leave();
  EXPECT_DEATH(roster_.Leave(), "tasks 0, with messages 0");
}

TEST_F(TaskRosterDeathTest, OnlyATaskOnTheRosterWorksAndItsWorkEndsOnce) {
  EXPECT_DEATH(roster_.BeginWork(), "tasks 0, with messages 0");
  EXPECT_EQ(roster_.Enter(1), 1);
  EXPECT_FALSE(roster_.BeginWork());
  roster_.EndWork();
  EXPECT_DEATH(roster_.EndWork(), "tasks 1, with messages 0");
}

}  // namespace
}  // namespace muster::listener
