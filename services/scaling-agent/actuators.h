// What carries out what the agent decides: this is the only place that names the actuators.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/actuator/actuator.h"
#include "muster/base/clock.h"
#include "muster/scaling_rules/rules.h"

namespace muster::scaling_agent {

struct ActuatorOptions {
  std::string kind = "dry-run";  // one of ActuatorKinds()
  // Of kubernetes. Empty: the namespace of the kubeconfig's context, or of the agent's own pod; the
  // kubeconfig as docs/kubernetes_scaling.md says.
  std::string name_space;
  std::string kubeconfig;
};

const std::vector<std::string>& ActuatorKinds();

// An actuator with all that it stands on.
class ActuatorHolder {
 public:
  virtual ~ActuatorHolder() = default;

  virtual actuator::Actuator* actuator() = 0;
  // From now on these rules' targets, by their ids, are what it scales.
  virtual void Use(const scaling_rules::Rules& rules) = 0;
};

// `clock` is not owned. InvalidArgument: there is no such kind. Unimplemented: it is not built in.
// Else what the platform's client says of its configuration.
absl::StatusOr<std::unique_ptr<ActuatorHolder>> OpenActuator(const ActuatorOptions& options,
                                                             base::Clock* clock);

}  // namespace muster::scaling_agent
