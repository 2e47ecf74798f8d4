// SPDX-License-Identifier: Apache-2.0

// TargetLoopFixture: runs the steps of a TargetLoop one by one, without its threads.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "muster/scaling/rules/rules_file.h"
#include "muster/telemetry/registry.h"
#include "services/scaling-agent/limits.h"
#include "services/scaling-agent/target_loop.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/scaling-agent/agent_fixture.h"
#include "tests/fakes/sync/memory_sync_store.h"

namespace muster::scaling_agent {

// The loop of one target with at most ten replicas. The test runs the loop's steps.
class TargetLoopFixture : public ::testing::Test {
 protected:
  TargetLoopFixture() {
    queues_.Create("in-0");
    EXPECT_TRUE(overrides_.Refresh().ok());
    UseRules("");
    MakeLoop();
  }

  static std::shared_ptr<const RulesInForce> RulesOf(const std::string& more,
                                                     const std::string& mode = "act",
                                                     const std::string& of_target = "") {
    const std::string text = absl::StrCat(
        "mode: ", mode,
        "\ntargets: {billing: {kind: process, name: p, queues: [in], sla: {max: 60s}, max: 10",
        of_target, "}}\n", more);
    auto rules = scaling::rules::ParseRules(text, "rules");
    EXPECT_TRUE(rules.ok()) << rules.status();
    return std::make_shared<const RulesInForce>(
        RulesInForce{std::make_shared<const scaling::rules::Rules>(*std::move(rules)), text, 1});
  }
  void UseRules(const std::string& more, const std::string& mode = "act",
                const std::string& of_target = "") {
    rules_ = RulesOf(more, mode, of_target);
    if (loop_ != nullptr) loop_->UseRules(rules_);
  }
  void MakeLoop() {
    LoopDependencies deps;
    deps.queues = queues_.store();
    deps.sync = &sync_;
    deps.actuator = &actuator_;
    deps.overrides = &overrides_;
    deps.decision_log = &decision_log_;
    deps.clock = &clock_;
    deps.metrics = &registry_;
    deps.token = [this] { return token_; };
    deps.roster = [this] { return roster_.List(v1::ROLE_PROCESSOR); };
    deps.initiators = [this] { return roster_.List(v1::ROLE_INITIATOR); };
    LoopOptions options;
    options.account = kTestAccount;
    options.speed = {absl::Seconds(10), 4};
    loop_ = std::make_unique<TargetLoop>(rules_->rules->targets.front(), options, deps, rules_);
  }

  // Runs the steps that the threads would take, then moves the clock by one second.
  void Second(int seconds = 1) {
    for (int i = 0; i < seconds; ++i) {
      for (const std::string& name : beating_) roster_.OnHeartbeat(BeatOf(name, ++beats_));
      for (const std::string& name : working_) roster_.OnHeartbeat(BusyBeatOf(name, ++beats_, 10));
      for (const std::string& name : waiting_) {
        v1::Heartbeat beat = BeatOf(name, ++beats_);
        beat.mutable_standby()->set_release("opening");
        roster_.OnHeartbeat(beat);
      }
      loop_->LookAtQueues();
      loop_->FillIds().IgnoreError();
      loop_->Decide();
      loop_->FillIds().IgnoreError();  // beginning a term has dropped them
      loop_->Decide();
      loop_->Act();
      clock_.Advance(absl::Seconds(1));
    }
  }
  // Long enough for every heartbeat to have arrived.
  void Settle() { Second(static_cast<int>(absl::ToInt64Seconds(kSettleTime)) + 1); }
  // The platform has these replicas, and each sends heartbeats.
  void HaveReplicas(std::vector<std::string> names) {
    actuator::TargetState state;
    state.wanted = static_cast<int>(names.size());
    for (const std::string& name : names) {
      state.replicas.push_back({name, name, actuator::ReplicaState::kReady, clock_.Now()});
    }
    actuator_.SetState(std::move(state));
    beating_ = std::move(names);
  }
  // The last decision, such as "3 deadline".
  std::string Last() const {
    const auto last = decision_log_.Last("billing");
    return last.has_value() ? absl::StrCat(last->replicas(), " ", last->binding()) : "";
  }

  base::FakeClock clock_;
  telemetry::Registry registry_;
  TestQueues queues_{&clock_};
  sync::testing::MemorySyncStore sync_;
  FakeActuator actuator_;
  Overrides overrides_{&sync_, &clock_};
  DecisionLog decision_log_{&clock_};
  bus::Roster roster_{&clock_};
  std::optional<HeldToken> token_ = HeldToken{1};
  std::vector<std::string> beating_, working_;
  std::vector<std::string> waiting_;  // for a release
  uint64_t beats_ = 0;
  std::shared_ptr<const RulesInForce> rules_;
  std::unique_ptr<TargetLoop> loop_;
};

}  // namespace muster::scaling_agent
