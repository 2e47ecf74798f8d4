#include "services/scaling-agent/actuators.h"

#include <fstream>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/os/temp_dir.h"
#include "services/scaling-agent/agent_options.h"
#include "tests/fakes/base/fake_clock.h"

namespace muster::scaling_agent {
namespace {

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
  scaling::actuator::Actuator* const actuator = (*opened)->actuator();
  EXPECT_EQ(actuator->kind(), "dry-run");
  EXPECT_EQ(actuator->Observe("billing")->wanted, 0) << "no rules are in force yet";
  scaling::rules::Rules rules;
  rules.targets.resize(1);
  rules.targets[0].id = "billing";
  rules.targets[0].queues = {"in"};
  (*opened)->Use(rules, {});
  EXPECT_EQ(actuator->Observe("billing")->wanted, 2);
  scaling::actuator::Order order;
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
