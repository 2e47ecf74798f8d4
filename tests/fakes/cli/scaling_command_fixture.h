// SPDX-License-Identifier: Apache-2.0

// The fixture for tests of `muster scale`: two scaling agents, of which one leads.
#pragma once

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/fakes/cli/client_fixture.h"
#include "tests/fakes/client/fake_scaling_agent.h"

namespace muster::cli {

inline v1::Instance AgentInstance(const client::testing::FakeAgent& agent,
                                  const std::string& name) {
  v1::Instance instance;
  instance.mutable_info()->set_role(v1::ROLE_SCALING_AGENT);
  instance.mutable_info()->set_instance(name);
  instance.mutable_info()->set_address(agent.address());
  return instance;
}

// Of two agents the first one leads. Target "billing" has 1 replica and wants 3.
class ScalingCommandTest : public ClientTest {
 protected:
  using AgentState = client::testing::AgentState;
  using FakeAgent = client::testing::FakeAgent;

  ScalingCommandTest() {
    two_.StepDown(one_.address());
    mesh_.others = {AgentInstance(one_, "s-1"), AgentInstance(two_, "s-2")};
    one_.Tell([&](AgentState& state) { state.targets = {Billing()}; });
    Decide(one_, 1);
    Decide(one_, 2);
  }

  v1::ScalingTarget Billing() {
    v1::ScalingTarget target;
    target.set_target("billing");
    target.add_queues("billing-in-0");
    *target.mutable_sla() = base::ToProto(absl::Minutes(5));
    target.mutable_replicas()->set_ready(1);
    target.mutable_replicas()->set_starting(2);
    target.mutable_replicas()->set_standby(4);
    *target.mutable_decision() = Decision(2);
    target.set_items_per_second(40);
    *target.mutable_oldest_deadline() = base::ToProto(clock_.Now() + absl::Seconds(270));
    return target;
  }

  // Number 2 is late.
  v1::ScalingDecision Decision(int number) {
    v1::ScalingDecision decision;
    decision.set_id(absl::StrCat("billing-", number));
    decision.set_target("billing");
    *decision.mutable_decided() = base::ToProto(clock_.Now() + absl::Seconds(number));
    decision.set_replicas_before(1);
    decision.set_replicas(number + 1);
    decision.set_binding("max");
    decision.set_wanted(5);
    decision.set_feasible(number != 2);
    decision.set_needs(5);
    *decision.mutable_late_by() = base::ToProto(absl::Seconds(number == 2 ? 53 : 0));
    *decision.mutable_deadline() = base::ToProto(clock_.Now() + absl::Minutes(5));
    decision.set_explanation(absl::StrCat("Grow from 1 to ", number + 1, " replicas."));
    decision.mutable_action()->set_state(v1::ScalingAction::STATE_DONE);
    decision.mutable_action()->set_before(1);
    decision.mutable_action()->set_after(number + 1);
    decision.mutable_action()->set_detail("started 2 processes");
    return decision;
  }

  void Decide(FakeAgent& agent, int number) {
    v1::GetDecisionResponse made;
    *made.mutable_decision() = Decision(number);
    v1::ScalingInputs* const inputs = made.mutable_inputs();
    inputs->set_max(3);
    inputs->set_range_by("default");
    inputs->set_items_per_second(40);
    inputs->set_cpu_share(0.5);
    inputs->mutable_replicas()->set_ready(1);
    v1::ScalingQueueReading* const reading = inputs->add_queues();
    reading->set_queue("billing-in-0");
    reading->set_ready(30'000);
    *reading->mutable_taken() = made.decision().decided();
    for (const auto& [by, replicas] : {std::pair("work", 5), std::pair("max", 3)}) {
      v1::ScalingCandidate* const candidate = made.add_candidates();
      candidate->set_by(by);
      candidate->set_replicas(replicas);
    }
    agent.Tell([&](AgentState& state) { state.decisions.push_back(made); });
  }

  FakeAgent one_, two_;
};

}  // namespace muster::cli
