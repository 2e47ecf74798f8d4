// SPDX-License-Identifier: Apache-2.0

// The findings of `muster doctor` about scaling agents, and about the processors that they start.

#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/cli/doctor_fixture.h"
#include "tests/fakes/client/fake_scaling_agent.h"

namespace muster::cli {

namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// The doctor does not ask for the agent's health here: the agent serves only ScalingService.
class ScalingDoctorTest : public DoctorTest {
 protected:
  ScalingDoctorTest() {
    v1::Instance agent = mesh_.controllers[0];
    agent.mutable_info()->set_role(v1::ROLE_SCALING_AGENT);
    agent.mutable_info()->set_instance("s-1");
    agent.mutable_info()->set_address(agent_.address());
    mesh_.others.push_back(agent);
    agent_.Tell([](AgentState& state) {
      state.agent.set_mode(v1::SCALING_MODE_ACT);
      state.agent.set_actuator("process");
      state.agent.set_rules_revision(3);
      state.targets.emplace_back().set_target("billing");
    });
  }

  using AgentState = client::testing::AgentState;
  client::testing::FakeAgent agent_;
};

TEST_F(ScalingDoctorTest, SaysThatAnAgentLeads) {
  EXPECT_THAT(RunOnServer({"doctor"}).out,
              AllOf(HasSubstr("ok: scaling agent s-1: leads; mode act, actuator process, rules "
                              "revision 3\n"),
                    Not(HasSubstr("billing"))));
}

TEST_F(ScalingDoctorTest, WarnsOfRefusedRulesAndOfTrouble) {
  agent_.Tell([](AgentState& state) {
    state.agent.set_rules_refusal("rules.yaml:3:1: no such key");
    state.targets[0].set_trouble("the actuator refuses");
  });
  EXPECT_THAT(RunOnServer({"doctor"}).out,
              AllOf(HasSubstr("warning: scaling agent s-1: refused a change of its rules: "
                              "rules.yaml:3:1: no such key; mend the file"),
                    HasSubstr("warning: scaling target billing: the actuator refuses; `muster "
                              "scale explain --target billing`")));
}

TEST_F(ScalingDoctorTest, FindsItWrongThatNobodyLeads) {
  agent_.StepDown("");
  const Done done = RunOnServer({"doctor"});
  EXPECT_EQ(done.code, kError);
  EXPECT_THAT(done.out, HasSubstr("wrong: scaling: no scaling agent that is heard leads"));
}

// The agent's target "billing" works on job "shop", and has scaled to zero processors.
class AtZeroDoctorTest : public ScalingDoctorTest {
 protected:
  AtZeroDoctorTest() {
    mesh_.others.erase(mesh_.others.begin());  // the processor
    agent_.Tell([](AgentState& state) { state.targets[0].add_queues("shop-in"); });
    const std::string path = dir_ / "shop.yaml";
    std::ofstream(path) << "shop: 1";
    EXPECT_EQ(RunOnServer({"job", "apply", path}).code, kOk);
  }
  void PutWaiting(uint64_t number, const std::string& job) {
    PutBatch(number, job, "");
    batches_.batches[number].set_problem("no processor has it");
  }
};

TEST_F(AtZeroDoctorTest, FindsAnIdleMeshWithoutProcessorsSound) {
  EXPECT_THAT(RunOnServer({"doctor"}).out,
              AllOf(HasSubstr("ok: processor: none is there; the scaling agent starts them\n"),
                    HasSubstr("ok: job shop: no processor has its handler now; scaling target "
                              "billing starts them when there is work\n"),
                    Not(HasSubstr("wrong: processor")), Not(HasSubstr("wrong: job"))));
}

TEST_F(AtZeroDoctorTest, SaysWhoIsStartedForABatch) {
  PutWaiting(7, "shop");
  agent_.Tell([](AgentState& state) { state.targets[0].mutable_decision()->set_replicas(2); });
  EXPECT_THAT(RunOnServer({"doctor"}).out, HasSubstr("ok: batch 7: waits: no processor has it\n"));
}

// Of a program that is not there the doctor said "ok", and ended with 0.
TEST_F(AtZeroDoctorTest, FindsItWrongThatNobodyCanBeStartedForABatch) {
  PutWaiting(7, "shop");
  agent_.Tell([](AgentState& state) {
    state.targets[0].mutable_decision()->set_replicas(2);
    state.targets[0].set_trouble("there is no program muster-procesor");
  });
  const Done done = RunOnServer({"doctor"});
  EXPECT_EQ(done.code, kError);
  EXPECT_THAT(done.out, AllOf(HasSubstr("wrong: scaling target billing: there is no program"),
                              HasSubstr("wrong: batch 7: waits: no processor has it; it goes on")));
}

TEST_F(AtZeroDoctorTest, WarnsOfABatchForWhichNobodyIsStarted) {
  PutWaiting(7, "shop");
  EXPECT_THAT(RunOnServer({"doctor"}).out,
              HasSubstr("warning: batch 7: waits: no processor has it; it goes on"));
}

TEST_F(AtZeroDoctorTest, WarnsOfReplicasThatDoNotHaveTheHandlerThatABatchNeeds) {
  PutWaiting(7, "shop");
  agent_.Tell([](AgentState& state) {
    state.targets[0].mutable_decision()->set_replicas(2);
    state.targets[0].mutable_replicas()->set_ready(2);
  });
  EXPECT_THAT(RunOnServer({"doctor"}).out,
              HasSubstr("warning: batch 7: waits: no processor has it; it goes on"));
}

TEST_F(AtZeroDoctorTest, ExpectsNobodyOfATargetWithOtherQueues) {
  PutWaiting(7, "shop");
  agent_.Tell([](AgentState& state) { state.targets[0].set_queues(0, "bakery-in"); });
  EXPECT_THAT(RunOnServer({"doctor"}).out,
              AllOf(HasSubstr("wrong: batch 7: waits: no processor has it"),
                    HasSubstr("wrong: job shop: no processor has its handler; start")));
}

TEST_F(AtZeroDoctorTest, ExpectsNobodyOfAnAgentThatOnlyTellsWhatItWouldDo) {
  PutWaiting(7, "shop");
  agent_.Tell([](AgentState& state) { state.agent.set_mode(v1::SCALING_MODE_OBSERVE); });
  EXPECT_THAT(RunOnServer({"doctor"}).out, AllOf(HasSubstr("wrong: batch 7: waits"),
                                                 HasSubstr("wrong: processor: the initiator has")));
  agent_.Tell([](AgentState& state) {
    state.agent.set_mode(v1::SCALING_MODE_ACT);
    state.agent.set_actuator("dry-run");
  });
  EXPECT_THAT(RunOnServer({"doctor"}).out, HasSubstr("wrong: batch 7: waits"));
}

TEST_F(DoctorTest, SaysNothingOfScalingWhereThereIsNone) {
  EXPECT_THAT(RunOnServer({"doctor"}).out, Not(HasSubstr("scaling")));
}

}  // namespace

}  // namespace muster::cli
