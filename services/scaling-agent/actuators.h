// ActuatorHolder: an actuator with all that it stands on.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/bus/roster.h"
#include "muster/rpc/channel.h"
#include "muster/scaling/actuator/actuator.h"
#include "muster/scaling/actuator/process/process_actuator.h"
#include "muster/scaling/actuator/threads/threads_actuator.h"
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

// Actuators of a host without a cluster: processes that the agent starts, and processors that
// somebody else has started.

struct ProcessOptions {
  // Empty: of this name, beside this process's own program.
  std::string processor_program;
  std::string keeper_program;
  std::vector<std::string> processor_arguments;
  // On top of this process's own.
  std::vector<std::pair<std::string, std::string>> environment;
  std::string folder;  // state and logs
  absl::Duration drain_grace = absl::Seconds(30);
};

struct ThreadsOptions {
  std::function<std::vector<bus::RosterEntry>()> roster;  // of processors; thread-safe
  rpc::ChannelOptions channel;
};

// The targets of kind "process", each with processors for the jobs whose queues it names; a queue
// that is no job's leaves them all jobs. A target's name is that of the program, unless the options
// name one: with a slash a path, else beside this process's own program.
scaling::actuator::process::Targets ProgramsOf(const scaling::rules::Rules& rules,
                                               const std::vector<std::string>& known_jobs,
                                               const ProcessOptions& options);

// The targets of kind "threads", each with the job whose queues it names; of several jobs, all.
scaling::actuator::threads::Targets JobsOf(const scaling::rules::Rules& rules,
                                           const std::vector<std::string>& known_jobs);

// `clock` is not owned. NotFound: there is no such program.
absl::StatusOr<std::unique_ptr<ActuatorHolder>> OpenProcesses(const ProcessOptions& options,
                                                              base::Clock* clock);
std::unique_ptr<ActuatorHolder> MakeThreads(const ThreadsOptions& options, base::Clock* clock);

// What carries out what the agent decides: this is the only place that names the actuators.

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
