// SPDX-License-Identifier: Apache-2.0

// The contract of all actuators, over real processes.
#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "muster/actuator/process/process_actuator.h"
#include "tests/conformance/actuator/actuator_conformance.h"
#include "tests/fakes/actuator/process/process_fixture.h"

namespace muster::actuator::conformance {
namespace {

using actuator::process::Eventually;
using actuator::process::ProcessActuator;

class ProcessStage final : public Stage {
 public:
  ProcessStage() {
    actuator::process::Options options;
    options.targets = {{target(), actuator::process::Worker()},
                       {other_target(), actuator::process::Worker()}};
    options.folder = folder_.path();
    options.keeper = MUSTER_KEEPER;
    actuator_ = *ProcessActuator::Open(options, base::RealClock());
  }
  Actuator* actuator() override { return actuator_.get(); }
  std::string target() override { return "billing"; }
  std::string other_target() override { return "mail"; }
  bool Await(const std::string& target, int replicas) override {
    return Eventually([&] {
      int ready = 0, others = 0;
      const TargetState state = *actuator_->Observe(target);
      for (const Replica& replica : state.replicas) {
        (replica.state == ReplicaState::kReady ? ready : others) += 1;
      }
      return ready == replicas && others == 0;
    });
  }
  int Told(const std::string& target) override { return folder_.Serving(target); }

 private:
  actuator::process::StateFolder folder_;
  std::unique_ptr<ProcessActuator> actuator_;
};

}  // namespace

INSTANTIATE_TEST_SUITE_P(Process, ActuatorConformance, ::testing::Values(Platform(Traits(), [] {
                           return std::make_unique<ProcessStage>();
                         })));

}  // namespace muster::actuator::conformance
