// DryRunActuator: tells what would be done, and does nothing.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "muster/actuator/actuator.h"
#include "muster/actuator/order_gate.h"
#include "muster/base/clock.h"

namespace muster::actuator_dry_run {

// Thread-safe. An outcome's `after` is what the platform would have been told; its detail says that
// it was not. Orders are refused as a real actuator refuses them.
class DryRunActuator final : public actuator::Actuator {
 public:
  using Targets = std::map<std::string, actuator::TargetState, std::less<>>;

  // Observes through another actuator, which is not owned, and is given no order. `clock` is not
  // owned.
  DryRunActuator(actuator::Actuator* observed, const base::Clock* clock);
  // There is no platform: this is what is seen, always.
  DryRunActuator(Targets targets, const base::Clock* clock);

  std::string_view kind() const override { return "dry-run"; }
  absl::StatusOr<actuator::TargetState> Observe(std::string_view target) override;
  absl::StatusOr<actuator::Outcome> Apply(const actuator::Order& order) override;

 private:
  actuator::Actuator* const observed_;  // not owned; nullptr: targets_
  const Targets targets_;
  actuator::OrderGate gate_;
};

}  // namespace muster::actuator_dry_run
