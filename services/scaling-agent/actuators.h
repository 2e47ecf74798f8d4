// SPDX-License-Identifier: Apache-2.0

// The actuators that the scaling agent can use. This is the only place that names their types.
//
// ActuatorHolder: owns an actuator and everything that the actuator uses.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/actuator/actuator.h"
#include "muster/actuator/process/process_actuator.h"
#include "muster/actuator/threads/threads_actuator.h"
#include "muster/base/clock.h"
#include "muster/bus/roster.h"
#include "muster/rpc/channel.h"
#include "muster/scaling/rules/rules.h"

namespace muster::scaling_agent {

// Thread-safe.
class ActuatorHolder {
 public:
  virtual ~ActuatorHolder() = default;

  virtual actuator::Actuator* actuator() = 0;
  // Replaces the actuator's targets with those of `rules`, by their ids. `jobs` lists the names of
  // the jobs that exist now (see JobOf).
  virtual void Use(const scaling::rules::Rules& rules, const std::vector<std::string>& jobs) = 0;
  // Lets the replicas go that the actuator has started for targets which are none any more, where
  // they would stay without an end. Only the agent that leads may say so; the arguments and the
  // errors are those of an order. Call it each second.
  virtual absl::Status LetGoOfUnknown(int64_t, absl::Duration) { return absl::OkStatus(); }
};

// Actuators for a host without a cluster: the agent starts processes itself (ProcessOptions), or it
// steers processors that were started by other means (ThreadsOptions).

struct ProcessOptions {
  // Empty: the program of this name in the folder of this process's own program.
  std::string processor_program;
  std::string keeper_program;
  std::vector<std::string> processor_arguments;
  // Added to this process's own environment.
  std::vector<std::pair<std::string, std::string>> environment;
  std::string folder;  // state and logs
  // Host at which each replica serves its metrics, at a port of its own; empty: nowhere.
  std::string metrics_host = {};
  absl::Duration drain_grace = absl::Seconds(30);
};

struct ThreadsOptions {
  std::function<std::vector<bus::RosterEntry>()> roster;  // of processors; thread-safe
  rpc::ChannelOptions channel;
};

// The targets of kind "process". Each replica is a processor for the jobs whose queues the target
// names; if one of the queues belongs to no job, the processor works for all jobs. The target's
// name is the name of the program, unless the options name one. A name with a slash is a path; any
// other name is looked up in the folder of this process's own program.
actuator::process::Targets ProgramsOf(const scaling::rules::Rules& rules,
                                      const std::vector<std::string>& known_jobs,
                                      const ProcessOptions& options);

// The targets of kind "threads", each with the job that owns its queues. Where the queues belong to
// several jobs, the target covers all jobs.
actuator::threads::Targets JobsOf(const scaling::rules::Rules& rules,
                                  const std::vector<std::string>& known_jobs);

// `clock` is not owned. NotFound: the program does not exist.
absl::StatusOr<std::unique_ptr<ActuatorHolder>> OpenProcesses(const ProcessOptions& options,
                                                              base::Clock* clock);
std::unique_ptr<ActuatorHolder> MakeThreads(const ThreadsOptions& options, base::Clock* clock);

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

// Whether actuators of this kind change the dequeue tasks of a replica that runs, or tell that they
// would. Elsewhere a policy must not count on more tasks: they never come.
bool SetsTasks(absl::string_view kind);

// `clock` is not owned. InvalidArgument: the kind is unknown. Other errors come from the platform's
// client and concern its configuration.
absl::StatusOr<std::unique_ptr<ActuatorHolder>> OpenActuator(const ActuatorOptions& options,
                                                             base::Clock* clock);

}  // namespace muster::scaling_agent
