// SPDX-License-Identifier: Apache-2.0
#include "services/scaling-agent/actuators.h"

#include <fstream>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/item/queue_names.h"
#include "muster/os/temp_dir.h"
#include "services/scaling-agent/queue_watch.h"
#include "services/scaling-agent/scaling_agent_role.h"
#include "tests/fakes/base/fake_clock.h"

namespace muster::scaling_agent {

namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::Pair;

scaling::rules::Target TargetOf(const std::string& id, const std::string& kind,
                                std::vector<std::string> queues) {
  scaling::rules::Target target;
  target.id = id;
  target.kind = kind;
  target.name = "muster-processor";
  target.queues = std::move(queues);
  return target;
}

TEST(JobOfTest, IsWhatStandsBeforeTheQueuesDirection) {
  EXPECT_EQ(JobOf("retail-in", {}), "retail");
  EXPECT_EQ(JobOf("retail-in-12", {}), "retail");
  EXPECT_EQ(JobOf("my_job-in", {}), "my_job");
  EXPECT_EQ(JobOf("check-in-retail-in-0", {}), "check-in-retail");
  EXPECT_EQ(JobOf("retail-in-3-in", {"retail"}), "retail-in-3");
  for (const char* name : {"retail-out-0", "retail-in-x", "-in-0", "-in", "inbox", "", "0", "12"}) {
    EXPECT_EQ(JobOf(name, {"retail"}), std::nullopt) << name;
  }
}

// The queue's name contains a hash in place of the job's exact name: JobOf compares it with the
// known jobs.
TEST(JobOfTest, IsTheJobThatTheQueueWasNamedFor) {
  const std::string queue = item::InputQueue("acme", "my_job", 3).name;
  EXPECT_EQ(JobOf(queue, {"my-job", "my_job", "other"}), "my_job");
  EXPECT_EQ(JobOf(queue, {"my-job"}), std::nullopt);
  EXPECT_EQ(JobOf(queue, {}), std::nullopt);
}

TEST(LocalActuatorsTest, StartProcessorsForTheJobsOfATargetsQueues) {
  scaling::rules::Rules rules;
  rules.targets = {TargetOf("bills", "process", {"retail-in-0", "retail-in-1", "rating-in"}),
                   TargetOf("odd", "process", {"retail-in", "inbox"}),
                   TargetOf("elsewhere", "deployment", {"retail-in"})};
  rules.targets[0].range.max = 7;
  ProcessOptions options;
  options.processor_program = "/bin/p";
  options.processor_arguments = {"--threads", "4"};
  options.environment = {{"MUSTER_NATS", "nats://here"}};
  const actuator::process::Targets programs = ProgramsOf(rules, {}, options);
  ASSERT_EQ(programs.size(), 2);
  const actuator::process::Program& bills = programs.at("bills");
  EXPECT_EQ(bills.path, "/bin/p");
  EXPECT_THAT(bills.arguments, ElementsAre("--threads", "4", "--job", "rating", "--job", "retail"));
  EXPECT_THAT(bills.environment, ElementsAre(Pair("MUSTER_NATS", "nats://here")));
  EXPECT_EQ(bills.most, 7);
  EXPECT_THAT(programs.at("odd").arguments, ElementsAre("--threads", "4"));
}

TEST(LocalActuatorsTest, KnowTheJobWhoseQueueHasAMadeName) {
  scaling::rules::Rules rules;
  const std::string queue = item::InputQueue("acme", "my_job", 0).name;
  rules.targets = {TargetOf("bills", "process", {queue}), TargetOf("fixed", "threads", {queue})};
  EXPECT_THAT(ProgramsOf(rules, {"my_job"}, {}).at("bills").arguments,
              ElementsAre("--job", "my_job"));
  EXPECT_THAT(JobsOf(rules, {"my_job"}), ElementsAre(Pair("fixed", "my_job")));
}

TEST(LocalActuatorsTest, FindTheProgramThatATargetNames) {
  scaling::rules::Rules rules;
  rules.targets = {TargetOf("bills", "process", {"retail-in"})};
  EXPECT_THAT(ProgramsOf(rules, {}, {}).at("bills").path, EndsWith("/muster-processor"));
  EXPECT_EQ(ProgramsOf(rules, {}, {}).at("bills").path.front(), '/');
  rules.targets[0].name = "bin/own";
  EXPECT_EQ(ProgramsOf(rules, {}, {}).at("bills").path, "bin/own");
}

TEST(LocalActuatorsTest, TellTheThreadsOfTheJobWhoseQueuesATargetNames) {
  scaling::rules::Rules rules;
  rules.targets = {TargetOf("one", "threads", {"retail-in-0", "retail-in-1"}),
                   TargetOf("two", "threads", {"retail-in", "rating-in"}),
                   TargetOf("elsewhere", "process", {"retail-in"})};
  EXPECT_THAT(JobsOf(rules, {}), ElementsAre(Pair("one", "retail"), Pair("two", "")));
}

TEST(LocalActuatorsTest, WantTheirProgramsAtTheStart) {
  base::FakeClock clock;
  const os::TempDir dir;
  ProcessOptions options;
  options.folder = dir / "replicas";
  options.keeper_program = dir / "keeper";
  EXPECT_TRUE(absl::IsNotFound(OpenProcesses(options, &clock).status()));
  std::ofstream(options.keeper_program) << "#!/bin/sh\n";
  EXPECT_TRUE(OpenProcesses(options, &clock).ok());
  options.processor_program = dir / "processor";
  EXPECT_TRUE(absl::IsNotFound(OpenProcesses(options, &clock).status()));
}

TEST(LocalActuatorsTest, HaveTheTargetsOfTheRulesInForce) {
  base::FakeClock clock;
  scaling::rules::Rules rules;
  rules.targets = {TargetOf("one", "threads", {"retail-in"})};
  ThreadsOptions options;
  options.roster = [] { return std::vector<bus::RosterEntry>(); };
  const auto threads = MakeThreads(options, &clock);
  EXPECT_TRUE(absl::IsNotFound(threads->actuator()->Observe("one").status()));
  threads->Use(rules, {});
  EXPECT_TRUE(threads->actuator()->Observe("one").ok());
}

using ::testing::ElementsAre;
using ::testing::HasSubstr;

bus::RosterEntry Heard(const std::string& instance, const std::string& queue, bool silent) {
  bus::RosterEntry entry;
  entry.heartbeat.mutable_instance()->set_instance(instance);
  entry.heartbeat.add_jobs()->add_partitions()->set_queue(queue);
  entry.leaving = silent;
  return entry;
}

TEST(ActuatorsTest, ADryRunSeesWhoIsHeardAndDoesNothing) {
  base::FakeClock clock;
  ActuatorOptions options;
  options.dry_run.account = "acme";
  options.dry_run.roster = [] {
    return std::vector{Heard("a", "acme/in-0", false), Heard("b", "acme/in-1", false),
                       Heard("c", "acme/in-1", true), Heard("d", "acme/other-0", false),
                       Heard("e", "others/in-0", false)};
  };
  const auto opened = OpenActuator(options, &clock);
  ASSERT_TRUE(opened.ok()) << opened.status();
  actuator::Actuator* const actuator = (*opened)->actuator();
  EXPECT_EQ(actuator->kind(), "dry-run");
  EXPECT_EQ(actuator->Observe("billing")->wanted, 0) << "no rules are in force yet";
  scaling::rules::Rules rules;
  rules.targets.resize(1);
  rules.targets[0].id = "billing";
  rules.targets[0].queues = {"in"};
  (*opened)->Use(rules, {});
  EXPECT_EQ(actuator->Observe("billing")->wanted, 2);
  actuator::Order order;
  order.target = "billing";
  order.replicas = 1;
  order.let_go_first = {"b", "a"};
  const auto outcome = actuator->Apply(order);
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_EQ(outcome->before, 2);
  EXPECT_EQ(outcome->after, 1);
  EXPECT_THAT(outcome->detail, HasSubstr("from 2 to 1 replicas, letting go first b, a"));
  EXPECT_EQ(actuator->Observe("billing")->wanted, 2);
}

TEST(ActuatorsTest, RefusesWhatItDoesNotHave) {
  base::FakeClock clock;
  ActuatorOptions options;
  options.kind = "cloud";
  EXPECT_TRUE(absl::IsInvalidArgument(OpenActuator(options, &clock).status()));
  options.kind = "kubernetes";
  options.kubeconfig = "/no/such/file";
  EXPECT_TRUE(absl::IsNotFound(OpenActuator(options, &clock).status()));
}

// A policy that counts on tasks which never come starts too few replicas.
TEST(ActuatorsTest, OnlyThoseThatSpeakToProcessorsSetTasks) {
  EXPECT_TRUE(SetsTasks("threads"));
  EXPECT_TRUE(SetsTasks("dry-run"));
  EXPECT_FALSE(SetsTasks("process"));
  EXPECT_FALSE(SetsTasks("kubernetes"));
}

TEST(AgentOptionsTest, NeedSoundRulesAndAKnownActuator) {
  const auto parse = [](const std::string& line) {
    RoleOptions options;
    CLI::App app;
    AddAgentOptions(&app, &options);
    try {
      app.parse(line);
    } catch (const CLI::ParseError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(parse("--actuator dry-run"), HasSubstr("--rules"));
  EXPECT_THAT(parse("--rules /no/such/file --actuator dry-run"), HasSubstr("/no/such/file"));
  EXPECT_THAT(parse("--rules /dev/null --actuator cloud"), HasSubstr("--"));
}

TEST(AgentOptionsTest, HandOnTheArgumentsOfReplicas) {
  const os::TempDir dir;
  std::ofstream(dir / "rules.yaml")
      << "targets:\n  one: {kind: process, name: p, queues: [retail-in], sla: {max: 60s}}\n";
  RoleOptions options;
  CLI::App app;
  AddAgentOptions(&app, &options);
  app.parse(absl::StrCat("--rules ", dir / "rules.yaml",
                         " --actuator process --processor-args=\"--threads 4\""));
  EXPECT_THAT(options.actuator.process.processor_arguments, ElementsAre("--threads", "4"));
}

}  // namespace

}  // namespace muster::scaling_agent
