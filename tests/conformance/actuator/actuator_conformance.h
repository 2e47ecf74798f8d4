// SPDX-License-Identifier: Apache-2.0

// The conformance tests of every Actuator. The test of an actuator includes this file, and in
// namespace actuator::conformance says
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
#include "muster/actuator/actuator.h"

namespace muster::actuator::conformance {

// A platform for one test, with two targets that have no replicas, or, where orders make none, at
// least five that are all parked.
class Stage {
 public:
  virtual ~Stage() = default;

  virtual Actuator* actuator() = 0;
  virtual std::string target() = 0;
  virtual std::string other_target() = 0;

  // Returns once `target` shows `replicas` replicas that are neither told to leave nor parked.
  // Returns false if it does not within the time that this platform may take.
  virtual bool Await(const std::string& target, int replicas) = 0;

  // Returns the orders that the platform itself reports, bypassing the actuator under test.
  virtual int Told(const std::string& target) = 0;
};

struct Traits {
  bool changes = true;       // false for a dry run
  bool has_replicas = true;  // orders make visible replicas
  bool chooses = true;       // the actuator heeds Order::let_go_first
  bool makes = true;         // false: all replicas exist already; an order unparks them
};

struct Platform {
  // nullptr: the platform is missing, and the tests are skipped.
  using StageMaker = std::function<std::unique_ptr<Stage>()>;

  // Defined in the .cc, so that every user of a Platform links the tests.
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
  // Applies the order; expects OK.
  Outcome Apply(const Order& order);
  absl::StatusCode Refusal(const Order& order) { return actuator().Apply(order).status().code(); }
  // Returns `ordered` if orders change the platform; otherwise `unchanged`.
  int Expected(int ordered, int unchanged = 0) const {
    return traits().changes ? ordered : unchanged;
  }
  // Returns the names of replicas that are neither told to leave nor parked.
  std::vector<std::string> Names();

  std::unique_ptr<Stage> stage_;
  std::string target_;
};

}  // namespace muster::actuator::conformance
