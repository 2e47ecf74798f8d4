// SPDX-License-Identifier: Apache-2.0

// DryRunActuator: reports what an actuator would do, and changes nothing.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "muster/actuator/actuator.h"
#include "muster/actuator/orders.h"
#include "muster/base/clock.h"

namespace muster::actuator::dry_run {

// Thread-safe. An outcome's `after` is the number that a real actuator would give to the platform;
// its detail says that nothing was changed. Refuses the orders that a real actuator refuses.
class DryRunActuator final : public actuator::Actuator {
 public:
  using Targets = std::map<std::string, actuator::TargetState, std::less<>>;

  // Observes through another actuator and gives it no orders. Neither `observed` nor `clock` is
  // owned.
  DryRunActuator(actuator::Actuator* observed, const base::Clock* clock);
  // Without a platform: Observe always returns these states.
  DryRunActuator(Targets targets, const base::Clock* clock);

  std::string_view kind() const override { return "dry-run"; }
  absl::StatusOr<actuator::TargetState> Observe(std::string_view target) override;
  absl::StatusOr<actuator::Outcome> Apply(const actuator::Order& order) override;

 private:
  actuator::Actuator* const observed_;  // not owned; nullptr: use targets_
  const Targets targets_;
  actuator::OrderGate gate_;
};

}  // namespace muster::actuator::dry_run
