// SPDX-License-Identifier: Apache-2.0
#include "services/scaling-agent/agent_metrics.h"

#include <fstream>
#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "muster/bus/local/local_buses.h"
#include "muster/os/temp_dir.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/base/let_others_run.h"
#include "tests/fakes/scaling-agent/target_loop_fixture.h"
#include "tests/fakes/telemetry/shown.h"

namespace muster::scaling_agent {
namespace {

using telemetry::Shown;

class DecisionMetricsTest : public TargetLoopFixture {
 protected:
  double Decisions(const std::string& reason, const std::string& direction) {
    return Shown(registry_, absl::StrCat("muster_scale_decisions_total{pool=\"billing\",reason=\"",
                                         reason, "\",direction=\"", direction, "\"}"))
        .value_or(0);
  }
};

TEST_F(DecisionMetricsTest, CountsEachDecisionThatSaysSomethingNew) {
  Settle();
  EXPECT_EQ(Decisions("nothing", "hold"), 1);
  loop_->OnWork("in-0", 5);
  loop_->Decide();
  EXPECT_EQ(Decisions("deadline", "up"), 1);
  loop_->Decide();
  EXPECT_EQ(Decisions("deadline", "up"), 1) << "it is the same decision";
}

TEST_F(DecisionMetricsTest, KnowsWhatIsDesiredWhileItLeads) {
  EXPECT_EQ(loop_->desired(), std::nullopt);
  Settle();
  loop_->OnWork("in-0", 5);
  loop_->Decide();
  EXPECT_EQ(loop_->desired(), 1);
  token_.reset();
  loop_->Decide();
  EXPECT_EQ(loop_->desired(), std::nullopt) << "another agent decides";
}

TEST_F(DecisionMetricsTest, KnowsWhetherAnybodyStartsWhatIsDesired) {
  Settle();
  EXPECT_TRUE(loop_->is_actuated());
  for (const char* mode : {"observe", "notify"}) {
    UseRules("", mode);
    Second();
    EXPECT_FALSE(loop_->is_actuated()) << mode;
  }
  UseRules("", "observe", ", actuator: external");
  Second();
  EXPECT_TRUE(loop_->is_actuated()) << "the other autoscaler reads the number all the same";
}

TEST_F(DecisionMetricsTest, MeasuresColdStarts) {
  Settle();
  loop_->OnWork("in-0", 5);
  Second();
  actuator::TargetState state;
  state.wanted = 1;
  state.replicas = {{"a", "a", actuator::ReplicaState::kStarting, clock_.Now()}};
  actuator_.SetState(state);
  Second(4);
  beating_ = {"a"};
  Second(2);
  EXPECT_EQ(Shown(registry_, R"(muster_worker_cold_start_seconds_count{pool="billing"})"), 1);
}

class AgentMetricsTest : public ::testing::Test {
 protected:
  AgentMetricsTest() {
    queues_.Create("in-0");
    std::ofstream(dir_ / "rules.yaml") << "targets: {billing: {kind: process, name: p, "
                                          "queues: [retail-in-0, credit_notes-in], sla: {max: "
                                          "90s}}}\n";
    auto rules =
        scaling::rules::RulesWatch::Open(dir_ / "rules.yaml", absl::ZeroDuration(), &clock_);
    EXPECT_TRUE(rules.ok()) << rules.status();
    AgentOptions options;
    options.election = {"a", "a:7703"};
    options.loop.account = kTestAccount;
    AgentDependencies deps;
    deps.queues = queues_.store();
    deps.sync = &sync_;
    deps.bus = &bus_;
    deps.actuator = &actuator_;
    deps.clock = &clock_;
    deps.roster = [] { return std::vector<bus::RosterEntry>(); };
    deps.metrics = &registry_;
    agent_ = std::make_unique<Agent>(std::move(options), std::move(deps), *std::move(rules));
    metrics_ = std::make_unique<AgentMetrics>(agent_.get(), &registry_);
  }

  base::FakeClock clock_;
  telemetry::Registry registry_;
  const os::TempDir dir_;
  TestQueues queues_{&clock_};
  sync::testing::MemorySyncStore sync_;
  bus::local::LocalTriggerBus bus_;
  FakeActuator actuator_;
  std::unique_ptr<Agent> agent_;
  std::unique_ptr<AgentMetrics> metrics_;
};

TEST_F(AgentMetricsTest, ShowsItsTargetsOnceItLeads) {
  const std::string desired = R"(muster_scale_desired{pool="billing"})";
  const std::string promise = R"(muster_sla_target_seconds{queue="retail-in"})";
  EXPECT_EQ(Shown(registry_, promise), std::nullopt) << "it does not lead yet";
  ASSERT_TRUE(agent_->Start().ok());
  while (!Shown(registry_, desired).has_value()) {
    clock_.Advance(absl::Milliseconds(10));
    base::LetOthersRun();
  }
  EXPECT_EQ(Shown(registry_, desired), 0);
  EXPECT_EQ(Shown(registry_, R"(muster_scale_actuated{pool="billing"})"), 1);
  EXPECT_EQ(Shown(registry_, promise), 90);
  EXPECT_EQ(Shown(registry_, R"(muster_sla_target_seconds{queue="credit-notes-in"})"), 90)
      << "as other metrics call the queues of the job credit_notes";
  for (const char* state : {"ready", "idle", "starting", "parked", "draining"}) {
    EXPECT_EQ(
        Shown(registry_, absl::StrCat("muster_workers{pool=\"billing\",state=\"", state, "\"}")), 0)
        << state;
  }
  agent_->Stop();
  EXPECT_EQ(Shown(registry_, desired), std::nullopt) << "another agent leads";
}

}  // namespace
}  // namespace muster::scaling_agent
