// SPDX-License-Identifier: Apache-2.0

// The process actuator when the program of a target, or its arguments, change.
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/actuator/process/process_actuator.h"
#include "tests/fakes/actuator/process/process_fixture.h"
#include "tests/fakes/base/fake_clock.h"

namespace muster::actuator::process {
namespace {

using actuator::Replica;
using actuator::ReplicaState;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class ProcessRollingUpdateTest : public ::testing::Test {
 protected:
  ProcessRollingUpdateTest() {
    options_.folder = folder_.path();
    options_.keeper = MUSTER_KEEPER;
    options_.targets["work"] = Of("slow", 2);
    Reopen();
  }
  ~ProcessRollingUpdateTest() override { LetThemEnd(); }

  // Works until it is told to end, and then until the test lets it.
  Program Of(const std::string& job, int most) {
    Program program = Script(absl::StrCat(
        "trap 'while [ -d ", files_.path(), " ] && [ ! -e ", files_ / "drained",
        " ]; do sleep 0.01; done; exit 0' TERM; ", kSaysReady, "; while :; do sleep 0.01; done"));
    program.arguments.insert(program.arguments.end(), {"--job", job});
    program.most = most;
    return program;
  }
  void LetThemEnd() { std::ofstream(files_ / "drained") << "x"; }
  void Reopen() {
    actuator_ = nullptr;
    auto opened = ProcessActuator::Open(options_, &clock_);
    ASSERT_TRUE(opened.ok()) << opened.status();
    actuator_ = *std::move(opened);
  }
  void Order(int replicas) {
    actuator::Order order;
    order.target = "work";
    order.replicas = replicas;
    order.fencing_token = 1;
    const auto outcome = actuator_->Apply(order);
    ASSERT_TRUE(outcome.ok()) << outcome.status();
  }
  actuator::TargetState Look() {
    auto state = actuator_->Observe("work");
    EXPECT_TRUE(state.ok()) << state.status();
    return state.value_or(actuator::TargetState());
  }
  std::multiset<std::string> Jobs(ReplicaState state) {
    std::multiset<std::string> jobs;
    for (const LivingReplica& living : folder_.TakeInventory().living) {
      if (living.state == state) jobs.insert(living.record.program.back());
    }
    return jobs;
  }
  bool AwaitReady(const std::multiset<std::string>& jobs) {
    return Eventually([&] {
      Look();
      return Jobs(ReplicaState::kReady) == jobs && Jobs(ReplicaState::kStarting).empty();
    });
  }

  base::FakeClock clock_;
  os::TempDir files_;
  StateFolder folder_;
  Options options_;
  std::unique_ptr<ProcessActuator> actuator_;
};

// The rules gave a target another queue: the replica that it had never served it, and counted as
// one that does.
TEST_F(ProcessRollingUpdateTest, AReplicaThatServesOtherJobsThanItsTargetIsReplaced) {
  Order(1);
  ASSERT_TRUE(AwaitReady({"slow"}));
  actuator_->SetTargets({{"work", Of("long", 2)}});
  EXPECT_TRUE(AwaitReady({"long"}));
  EXPECT_EQ(Look().wanted, 1);
  EXPECT_EQ(Jobs(ReplicaState::kDraining), std::multiset<std::string>{"slow"})
      << "it finishes what it has begun";
  LetThemEnd();
  EXPECT_TRUE(Eventually([&] { return Look().replicas.size() == 1; }));
  EXPECT_EQ(Look().trouble, "");
}

TEST_F(ProcessRollingUpdateTest, AnAgentThatStartsAnewReplacesWhatAnotherOneHasStarted) {
  Order(2);
  ASSERT_TRUE(AwaitReady({"slow", "slow"}));
  options_.targets["work"] = Of("long", 3);
  Reopen();
  EXPECT_TRUE(AwaitReady({"long", "long"}));
}

TEST_F(ProcessRollingUpdateTest, ATargetThatMayHaveNoMoreIsReplacedOneByOne) {
  Order(2);
  ASSERT_TRUE(AwaitReady({"slow", "slow"}));
  actuator_->SetTargets({{"work", Of("long", 2)}});
  Look();
  EXPECT_EQ(folder_.Serving("work"), 2);
  EXPECT_THAT(Jobs(ReplicaState::kDraining), SizeIs(1));
  EXPECT_TRUE(AwaitReady({"long", "long"}));
}

TEST_F(ProcessRollingUpdateTest, WhatWorksStaysWhileItsSuccessorCannotStart) {
  Order(2);
  ASSERT_TRUE(AwaitReady({"slow", "slow"}));
  for (const int most : {2, 3}) {
    actuator_->SetTargets({{"work", {files_ / "nothing", {}, {}, most}}});
    for (int look = 0; look < 3; ++look) {
      EXPECT_THAT(Look().trouble, HasSubstr(files_ / "nothing"));
      clock_.Advance(kMaxRestartWait);
    }
    EXPECT_EQ(Jobs(ReplicaState::kReady), (std::multiset<std::string>{"slow", "slow"}));
  }
}

TEST_F(ProcessRollingUpdateTest, AReplicaStaysWhenOnlyItsEnvironmentOrTheBoundChanges) {
  Order(1);
  ASSERT_TRUE(AwaitReady({"slow"}));
  Program program = Of("slow", 7);
  program.environment = {{"MUSTER_LOG_LEVEL", "debug"}};
  actuator_->SetTargets({{"work", program}});
  for (int look = 0; look < 3; ++look) Look();
  EXPECT_THAT(folder_.TakeInventory().living, SizeIs(1));
}

}  // namespace
}  // namespace muster::actuator::process
