#include "services/scaling-agent/actuators.h"

#include <fstream>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/fake_clock.h"
#include "muster/base/temp_dir.h"
#include "services/scaling-agent/agent_options.h"

namespace muster::scaling_agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ActuatorsTest, ADryRunSeesNobodyAndDoesNothing) {
  base::FakeClock clock;
  const auto opened = OpenActuator(ActuatorOptions(), &clock);
  ASSERT_TRUE(opened.ok()) << opened.status();
  actuator::Actuator* const actuator = (*opened)->actuator();
  EXPECT_EQ(actuator->kind(), "dry-run");
  EXPECT_EQ(actuator->Observe("billing")->wanted, 0);
  actuator::Order order;
  order.target = "billing";
  order.replicas = 3;
  const auto outcome = actuator->Apply(order);
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_EQ(outcome->after, 3);
  EXPECT_EQ(actuator->Observe("billing")->wanted, 0);
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
  const base::TempDir dir;
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
