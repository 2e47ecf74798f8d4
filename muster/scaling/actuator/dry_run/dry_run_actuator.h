// DryRunActuator: reports what an actuator would do, and changes nothing.
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

// Thread-safe. An outcome's `after` is the number that a real actuator would give to the platform;
// its detail says that nothing was changed. Refuses the orders that a real actuator refuses.
class DryRunActuator final : public scaling::actuator::Actuator {
 public:
  using Targets = std::map<std::string, scaling::actuator::TargetState, std::less<>>;

  // Observes through another actuator and gives it no orders. Neither `observed` nor `clock` is
  // owned.
  DryRunActuator(scaling::actuator::Actuator* observed, const base::Clock* clock);
  // Without a platform: Observe always returns these states.
  DryRunActuator(Targets targets, const base::Clock* clock);

  std::string_view kind() const override { return "dry-run"; }
  absl::StatusOr<scaling::actuator::TargetState> Observe(std::string_view target) override;
  absl::StatusOr<scaling::actuator::Outcome> Apply(const scaling::actuator::Order& order) override;

 private:
  scaling::actuator::Actuator* const observed_;  // not owned; nullptr: use targets_
  const Targets targets_;
  scaling::actuator::OrderGate gate_;
};

}  // namespace muster::scaling::actuator::dry_run
