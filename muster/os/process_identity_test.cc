// SPDX-License-Identifier: Apache-2.0
#include "muster/os/process_identity.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <memory>
#include <thread>

#include "gtest/gtest.h"
#include "muster/os/child_process.h"
#include "tests/fakes/base/let_others_run.h"

namespace muster::os {
namespace {

// It outlives the thread that starts it.
ProcessSpec Sleeper() {
  ProcessSpec sleeper;
  sleeper.path = "/bin/sleep";
  sleeper.argv = {"sleep", "1000"};
  sleeper.death_signal = 0;
  return sleeper;
}

class ProcessIdentityTest : public ::testing::Test {
 protected:
  std::unique_ptr<ChildProcess> child_ = *ChildProcess::Start(Sleeper());
  const ProcessIdentity process_ = *IdentityOf(child_->pid());
};

TEST_F(ProcessIdentityTest, LivesUntilItEnds) {
  EXPECT_TRUE(IsAlive(process_, "1000"));
  child_->Kill();
  EXPECT_FALSE(IsAlive(process_, "1000"));
  EXPECT_FALSE(SendSignal(process_, SIGTERM));
}

// Its command line is empty then, in about one of five starts.
TEST(ProcessIdentityOfTest, IsAliveAtTheVeryMomentWhenTheProcessStarts) {
  for (int i = 0; i < 100; ++i) {
    const auto child = *ChildProcess::Start(Sleeper());
    ASSERT_TRUE(IsAlive(*IdentityOf(child->pid()), "1000"));
    child->Kill();
  }
}

TEST_F(ProcessIdentityTest, IsGoneThoughNobodyHasWaitedForIt) {
  EXPECT_TRUE(SendSignal(process_, SIGKILL));
  siginfo_t ignored;
  waitid(P_PID, static_cast<id_t>(process_.pid), &ignored, WEXITED | WNOWAIT);
  EXPECT_EQ(IdentityOf(process_.pid), std::nullopt);
  EXPECT_FALSE(IsAlive(process_, "1000"));
}

// The pid belongs to another process by now.
TEST_F(ProcessIdentityTest, IsNotTheNextProcessOfItsNumber) {
  ProcessIdentity earlier = process_;
  --earlier.start_ticks;
  ProcessIdentity other_boot = process_;
  other_boot.boot = "another";
  for (const ProcessIdentity& other : {earlier, other_boot}) {
    EXPECT_FALSE(IsAlive(other, "1000"));
    EXPECT_FALSE(SendSignal(other, SIGKILL));
  }
  EXPECT_FALSE(child_->HasEnded());
}

TEST_F(ProcessIdentityTest, IsKnownByItsCommandLineToo) {
  EXPECT_FALSE(IsAlive(process_, "100"));
  EXPECT_FALSE(IsAlive({}, ""));
}

TEST(ProcessIdentityOfTest, IsAskedForAtTheVeryMomentWhenTheProcessEnds) {
  for (int i = 0; i < 50; ++i) {
    const auto child = *ChildProcess::Start(Sleeper());
    const pid_t pid = child->pid();
    std::atomic<bool> asked = false, gone = false;
    std::thread asker([&] {
      while (!gone) {
        IsAlive(ProcessIdentity{pid, 0, ""}, "1000");
        asked = true;
      }
    });
    while (!asked) base::LetOthersRun();
    child->Kill();
    gone = true;
    asker.join();
    EXPECT_EQ(IdentityOf(pid), std::nullopt);
  }
}

TEST(ProcessIdentityOfTest, KnowsNobodyByANumberThatIsNone) {
  for (const pid_t pid : {0, -1, 999'999'999}) EXPECT_EQ(IdentityOf(pid), std::nullopt) << pid;
}

}  // namespace
}  // namespace muster::os
