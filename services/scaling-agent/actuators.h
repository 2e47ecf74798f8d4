// What carries out what the agent decides: this is the only place that names the actuators.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/base/clock.h"
#include "muster/bus/roster.h"
#include "services/scaling-agent/actuator_holder.h"
#include "services/scaling-agent/local_actuators.h"

namespace muster::scaling_agent {

struct DryRunOptions {
  std::function<std::vector<bus::RosterEntry>()> roster;  // of processors; thread-safe
  std::string account;                                    // of the queues
};

struct ActuatorOptions {
  std::string kind = "dry-run";  // one of ActuatorKinds()
  // Of kubernetes. Empty: the namespace of the kubeconfig's context, or of the agent's own pod; the
  // kubeconfig as docs/kubernetes_scaling.md says.
  std::string name_space;
  std::string kubeconfig;
  ProcessOptions process;
  ThreadsOptions threads;
  DryRunOptions dry_run;
};

const std::vector<std::string>& ActuatorKinds();

// `clock` is not owned. InvalidArgument: there is no such kind. Else what the platform's
// client says of its configuration.
absl::StatusOr<std::unique_ptr<ActuatorHolder>> OpenActuator(const ActuatorOptions& options,
                                                             base::Clock* clock);

}  // namespace muster::scaling_agent
