// SPDX-License-Identifier: Apache-2.0
#include "muster/actuator/dry_run/dry_run_actuator.h"

#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/conformance/actuator/actuator_conformance.h"

namespace muster::actuator::conformance {
namespace {

using actuator::dry_run::DryRunActuator;

class GivenStage final : public Stage {
 public:
  Actuator* actuator() override { return &actuator_; }
  std::string target() override { return "billing"; }
  std::string other_target() override { return "mail"; }
  bool Await(const std::string& target, int replicas) override { return false; }
  int Told(const std::string& target) override { return actuator_.Observe(target)->wanted; }

 private:
  DryRunActuator actuator_{DryRunActuator::Targets{{"billing", {}}, {"mail", {}}},
                           base::RealClock()};
};

// A platform that fails the test when it receives an order.
class Untouched final : public Actuator {
 public:
  std::string_view kind() const override { return "threads"; }
  absl::StatusOr<TargetState> Observe(std::string_view target) override {
    return given_.Observe(target);
  }
  absl::StatusOr<Outcome> Apply(const Order& order) override {
    ADD_FAILURE() << "a dry run gave an order for " << order.target;
    return absl::InternalError("touched");
  }

 private:
  DryRunActuator given_{DryRunActuator::Targets{{"billing", {}}, {"mail", {}}}, base::RealClock()};
};

class ObservingStage final : public Stage {
 public:
  Actuator* actuator() override { return &actuator_; }
  std::string target() override { return "billing"; }
  std::string other_target() override { return "mail"; }
  bool Await(const std::string& target, int replicas) override { return false; }
  int Told(const std::string& target) override { return platform_.Observe(target)->wanted; }

 private:
  Untouched platform_;
  DryRunActuator actuator_{&platform_, base::RealClock()};
};

constexpr Traits kDryRun{.changes = false, .has_replicas = false, .chooses = false};

}  // namespace

INSTANTIATE_TEST_SUITE_P(GivenState, ActuatorConformance, ::testing::Values(Platform(kDryRun, [] {
                           return std::make_unique<GivenStage>();
                         })));
INSTANTIATE_TEST_SUITE_P(OtherActuator, ActuatorConformance,
                         ::testing::Values(Platform(kDryRun, [] {
                           return std::make_unique<ObservingStage>();
                         })));

}  // namespace muster::actuator::conformance

namespace muster::actuator::dry_run {
namespace {

using ::testing::HasSubstr;

actuator::TargetState Three() { return {.wanted = 3, .replicas = {}}; }

actuator::Order To(int replicas) {
  actuator::Order order;
  order.target = "billing";
  order.replicas = replicas;
  return order;
}

TEST(DryRunActuatorTest, TellsWhatItWouldDo) {
  DryRunActuator actuator(DryRunActuator::Targets{{"billing", Three()}}, base::RealClock());
  actuator::Order order = To(1);
  order.tasks = 2;
  order.let_go_first = {"p-2", "p-0"};
  const auto outcome = actuator.Apply(order);
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(outcome->before, 3);
  EXPECT_EQ(outcome->after, 1);
  EXPECT_EQ(outcome->detail,
            "dry run: would go from 3 to 1 replicas of 2 tasks, letting go first p-2, p-0; nothing "
            "was changed");
  EXPECT_EQ(actuator.Observe("billing")->wanted, 3);
}

TEST(DryRunActuatorTest, SaysThatNothingWouldChange) {
  DryRunActuator actuator(DryRunActuator::Targets{{"billing", Three()}}, base::RealClock());
  const auto outcome = actuator.Apply(To(3));
  EXPECT_THAT(outcome->detail, HasSubstr("would stay at 3 replicas; nothing was changed"));
}

TEST(DryRunActuatorTest, HandsOnWhatTheObservedActuatorAnswers) {
  DryRunActuator empty(DryRunActuator::Targets{}, base::RealClock());
  DryRunActuator actuator(&empty, base::RealClock());
  EXPECT_EQ(actuator.Observe("billing").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(actuator.Apply(To(1)).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace muster::actuator::dry_run
