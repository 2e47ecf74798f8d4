// ActuatorHolder: an actuator with all that it stands on.
#pragma once

#include <string>
#include <vector>

#include "muster/scaling/actuator/actuator.h"
#include "muster/scaling/rules/rules.h"

namespace muster::scaling_agent {

// Thread-safe.
class ActuatorHolder {
 public:
  virtual ~ActuatorHolder() = default;

  virtual scaling::actuator::Actuator* actuator() = 0;
  // From now on these rules' targets, by their ids, are what it scales. `jobs`: those that there
  // are now (JobOf).
  virtual void Use(const scaling::rules::Rules& rules, const std::vector<std::string>& jobs) = 0;
};

}  // namespace muster::scaling_agent
