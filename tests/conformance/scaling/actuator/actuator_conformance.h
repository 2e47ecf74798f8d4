// What every Actuator must do. An actuator's test includes this, and in namespace
// scaling::actuator::conformance says
//
//   INSTANTIATE_TEST_SUITE_P(Process, ActuatorConformance,
//                            ::testing::Values(Platform(traits, &MakeStage)));
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "muster/scaling/actuator/actuator.h"

namespace muster::scaling::actuator::conformance {

// A platform for one test, with two targets that have no replicas, or, where orders make none, at
// least five that are all parked.
class Stage {
 public:
  virtual ~Stage() = default;

  virtual Actuator* actuator() = 0;
  virtual std::string target() = 0;
  virtual std::string other_target() = 0;

  // Returns once `target` shows `replicas` replicas that were not told to go or parked; false: it
  // does not,
  // in as long as this platform may take.
  virtual bool Await(const std::string& target, int replicas) = 0;

  // What the platform itself says that it was told, past the actuator under test.
  virtual int Told(const std::string& target) = 0;
};

struct Traits {
  bool changes = true;       // false: a dry run
  bool has_replicas = true;  // orders make replicas that can be seen
  bool chooses = true;       // Order::let_go_first is heeded
  bool makes = true;         // false: replicas are there already, parked until an order wants them
};

struct Platform {
  // nullptr: the platform is not there, and the tests are skipped.
  using StageMaker = std::function<std::unique_ptr<Stage>()>;

  // Lives in the .cc, so that whoever makes a Platform links the tests.
  Platform(Traits platform_traits, StageMaker maker);

  Traits traits;
  StageMaker make_stage;
};

class ActuatorConformance : public ::testing::TestWithParam<Platform> {
 protected:
  void SetUp() override;

  const Traits& traits() const { return GetParam().traits; }
  Actuator& actuator() { return *stage_->actuator(); }
  Order To(int replicas, int64_t token = 1) const;
  // Carries it out; expects that it is OK.
  Outcome Apply(const Order& order);
  absl::StatusCode Refusal(const Order& order) { return actuator().Apply(order).status().code(); }
  // What the platform was told, if orders change anything; else `unchanged`.
  int Expected(int ordered, int unchanged = 0) const {
    return traits().changes ? ordered : unchanged;
  }
  // Names of those that were not told to go and are not parked.
  std::vector<std::string> Names();

  std::unique_ptr<Stage> stage_;
  std::string target_;
};

}  // namespace muster::scaling::actuator::conformance
