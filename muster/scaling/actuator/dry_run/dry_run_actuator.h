// DryRunActuator: tells what would be done, and does nothing.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "muster/base/clock.h"
#include "muster/scaling/actuator/actuator.h"
#include "muster/scaling/actuator/orders.h"

namespace muster::scaling::actuator::dry_run {

// Thread-safe. An outcome's `after` is what the platform would have been told; its detail says that
// it was not. Orders are refused as a real actuator refuses them.
class DryRunActuator final : public scaling::actuator::Actuator {
 public:
  using Targets = std::map<std::string, scaling::actuator::TargetState, std::less<>>;

  // Observes through another actuator, which is not owned, and is given no order. `clock` is not
  // owned.
  DryRunActuator(scaling::actuator::Actuator* observed, const base::Clock* clock);
  // There is no platform: this is what is seen, always.
  DryRunActuator(Targets targets, const base::Clock* clock);

  std::string_view kind() const override { return "dry-run"; }
  absl::StatusOr<scaling::actuator::TargetState> Observe(std::string_view target) override;
  absl::StatusOr<scaling::actuator::Outcome> Apply(const scaling::actuator::Order& order) override;

 private:
  scaling::actuator::Actuator* const observed_;  // not owned; nullptr: targets_
  const Targets targets_;
  scaling::actuator::OrderGate gate_;
};

}  // namespace muster::scaling::actuator::dry_run
