// SPDX-License-Identifier: Apache-2.0
#include "services/scaling-agent/actuators.h"

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "muster/actuator/dry_run/dry_run_actuator.h"
#include "muster/actuator/kubernetes/kubernetes_actuator.h"
#include "muster/base/mutex.h"
#include "muster/base/status.h"
#include "muster/kubernetes/access.h"
#include "muster/kubernetes/client.h"
#include "services/scaling-agent/queue_watch.h"
#include "services/scaling-agent/worker_load.h"

namespace muster::scaling_agent {

namespace {

using scaling::rules::Rules;
using scaling::rules::Target;

constexpr char kKeeper[] = "muster-replica-keeper";
constexpr char kMetricsTargets[] = "prometheus.json";  // in the state folder

std::string BesideThisProgram(const std::string& name) {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  return (self.parent_path() / name).string();
}

std::string PathOf(const std::string& given, const std::string& name) {
  return given.empty() ? BesideThisProgram(name) : given;
}

// The jobs that own the target's queues; nullopt: one of the queues belongs to no job.
std::optional<std::set<std::string>> JobsOfTarget(const Target& target,
                                                  const std::vector<std::string>& known_jobs) {
  std::set<std::string> jobs;
  for (const std::string& queue : target.queues) {
    const std::optional<std::string> job = JobOf(queue, known_jobs);
    if (!job.has_value()) return std::nullopt;
    jobs.insert(*job);
  }
  return jobs;
}

std::string ProgramOf(const Target& target, const ProcessOptions& options) {
  if (!options.processor_program.empty()) return options.processor_program;
  return absl::StrContains(target.name, '/') ? target.name : BesideThisProgram(target.name);
}

// `option` names another one.
absl::Status CheckProgram(const std::string& path, const char* option) {
  std::error_code error;
  if (std::filesystem::is_regular_file(path, error)) return absl::OkStatus();
  return absl::NotFoundError(
      absl::StrCat("there is no program ", path, "; ", option, " names another one"));
}

class Processes final : public ActuatorHolder {
 public:
  Processes(ProcessOptions options, std::unique_ptr<actuator::process::ProcessActuator> actuator)
      : options_(std::move(options)), actuator_(std::move(actuator)) {}

  actuator::Actuator* actuator() override { return actuator_.get(); }
  void Use(const Rules& rules, const std::vector<std::string>& jobs) override {
    actuator_->SetTargets(ProgramsOf(rules, jobs, options_));
  }
  absl::Status LetGoOfUnknown(int64_t fencing_token, absl::Duration not_after) override {
    return actuator_->LetGoOfUnknown(fencing_token, not_after);
  }

 private:
  const ProcessOptions options_;
  const std::unique_ptr<actuator::process::ProcessActuator> actuator_;
};

std::vector<actuator::threads::LiveProcessor> LiveOf(const std::vector<bus::RosterEntry>& heard) {
  std::vector<actuator::threads::LiveProcessor> processors;
  for (const bus::RosterEntry& entry : heard) {
    if (!entry.leaving) processors.push_back(actuator::threads::FromHeartbeat(entry.heartbeat));
  }
  return processors;
}

class Threads final : public ActuatorHolder {
 public:
  Threads(const ThreadsOptions& options, base::Clock* clock)
      : actuator_({.targets = {},
                   .processors = [roster = options.roster] { return LiveOf(roster()); },
                   .channel = options.channel},
                  clock) {}

  actuator::Actuator* actuator() override { return &actuator_; }
  void Use(const Rules& rules, const std::vector<std::string>& jobs) override {
    actuator_.SetTargets(JobsOf(rules, jobs));
  }

 private:
  actuator::threads::ThreadsActuator actuator_;
};

}  // namespace

actuator::process::Targets ProgramsOf(const Rules& rules,
                                      const std::vector<std::string>& known_jobs,
                                      const ProcessOptions& options) {
  actuator::process::Targets targets;
  for (const Target& target : rules.targets) {
    if (target.kind != "process") continue;
    actuator::process::Program& program = targets[target.id];
    program.path = ProgramOf(target, options);
    program.arguments = options.processor_arguments;
    program.environment = options.environment;
    program.most = target.range.max;
    for (const std::string& job :
         JobsOfTarget(target, known_jobs).value_or(std::set<std::string>())) {
      program.arguments.insert(program.arguments.end(), {"--job", job});
    }
  }
  return targets;
}

actuator::threads::Targets JobsOf(const Rules& rules, const std::vector<std::string>& known_jobs) {
  actuator::threads::Targets targets;
  for (const Target& target : rules.targets) {
    if (target.kind != "threads") continue;
    const auto jobs = JobsOfTarget(target, known_jobs);
    targets[target.id] = jobs.has_value() && jobs->size() == 1 ? *jobs->begin() : "";
  }
  return targets;
}

absl::StatusOr<std::unique_ptr<ActuatorHolder>> OpenProcesses(const ProcessOptions& options,
                                                              base::Clock* clock) {
  actuator::process::Options actuator;
  actuator.folder = options.folder;
  actuator.keeper = PathOf(options.keeper_program, kKeeper);
  actuator.drain_grace = options.drain_grace;
  if (!options.metrics_host.empty()) {
    actuator.metrics_targets = absl::StrCat(options.folder, "/", kMetricsTargets);
  }
  MUSTER_RETURN_IF_ERROR(CheckProgram(actuator.keeper, "--replica-keeper"));
  if (!options.processor_program.empty()) {
    MUSTER_RETURN_IF_ERROR(CheckProgram(options.processor_program, "--processor-program"));
  }
  MUSTER_ASSIGN_OR_RETURN(auto opened, actuator::process::ProcessActuator::Open(actuator, clock));
  return std::make_unique<Processes>(options, std::move(opened));
}

std::unique_ptr<ActuatorHolder> MakeThreads(const ThreadsOptions& options, base::Clock* clock) {
  return std::make_unique<Threads>(options, clock);
}

namespace {

using scaling::rules::Rules;

// Has no platform: every processor that sends heartbeats for a target's queues counts as a replica.
class HeardProcessors final : public actuator::Actuator {
 public:
  explicit HeardProcessors(DryRunOptions options) : options_(std::move(options)) {}

  void SetTargets(const Rules& rules) ABSL_LOCKS_EXCLUDED(mu_) {
    base::MutexLock lock(&mu_);
    queues_.clear();
    for (const scaling::rules::Target& target : rules.targets) queues_[target.id] = target.queues;
  }

  std::string_view kind() const override { return "none"; }
  absl::StatusOr<actuator::TargetState> Observe(std::string_view target) override
      ABSL_LOCKS_EXCLUDED(mu_) {
    actuator::TargetState state;
    const std::vector<std::string> queues = QueuesOf(target);
    for (const bus::RosterEntry& entry : options_.roster()) {
      const WorkerLoad load = LoadOf(entry, options_.account, queues);
      if (!load.listens || load.leaving || load.silent) continue;
      state.replicas.push_back(
          {load.instance, load.instance, actuator::ReplicaState::kReady, absl::InfinitePast()});
      ++state.wanted;
    }
    return state;
  }
  absl::StatusOr<actuator::Outcome> Apply(const actuator::Order&) override {
    return absl::UnimplementedError("there is no platform");
  }

 private:
  std::vector<std::string> QueuesOf(std::string_view target) ABSL_LOCKS_EXCLUDED(mu_) {
    base::MutexLock lock(&mu_);
    const auto found = queues_.find(target);
    return found == queues_.end() ? std::vector<std::string>() : found->second;
  }

  const DryRunOptions options_;
  base::Mutex mu_;
  std::map<std::string, std::vector<std::string>, std::less<>> queues_ ABSL_GUARDED_BY(mu_);
};

class DryRun final : public ActuatorHolder {
 public:
  DryRun(const DryRunOptions& options, base::Clock* clock)
      : heard_(options), actuator_(&heard_, clock) {}

  actuator::Actuator* actuator() override { return &actuator_; }
  void Use(const Rules& rules, const std::vector<std::string>&) override {
    heard_.SetTargets(rules);
  }

 private:
  HeardProcessors heard_;
  actuator::dry_run::DryRunActuator actuator_;
};

// Leaves out targets of other kinds. For those the actuator answers NotFound, and the target's
// status reports that error.
actuator::kubernetes::Targets WorkloadsOf(const Rules& rules, const std::string& name_space) {
  actuator::kubernetes::Targets targets;
  for (const scaling::rules::Target& target : rules.targets) {
    const bool is_stateful = target.kind == "statefulset";
    if (!is_stateful && target.kind != "deployment") continue;
    targets[target.id] = {is_stateful ? kubernetes::WorkloadKind::kStatefulSet
                                      : kubernetes::WorkloadKind::kDeployment,
                          name_space, target.name};
  }
  return targets;
}

class Kubernetes final : public ActuatorHolder {
 public:
  Kubernetes(std::unique_ptr<kubernetes::Client> client, std::string name_space, base::Clock* clock)
      : client_(std::move(client)),
        name_space_(std::move(name_space)),
        actuator_(client_.get(), {}, clock) {}

  actuator::Actuator* actuator() override { return &actuator_; }
  void Use(const Rules& rules, const std::vector<std::string>&) override {
    actuator_.SetTargets(WorkloadsOf(rules, name_space_));
  }

 private:
  const std::unique_ptr<kubernetes::Client> client_;
  const std::string name_space_;
  actuator::kubernetes::KubernetesActuator actuator_;
};

absl::StatusOr<std::unique_ptr<ActuatorHolder>> OpenKubernetes(const ActuatorOptions& options,
                                                               base::Clock* clock) {
  MUSTER_ASSIGN_OR_RETURN(
      kubernetes::Access access,
      kubernetes::FindAccess(options.kubeconfig, kubernetes::ProcessEnvironment()));
  MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<kubernetes::Client> client,
                          kubernetes::Client::Open(std::move(access), clock));
  return std::make_unique<Kubernetes>(std::move(client), options.name_space, clock);
}

}  // namespace

const std::vector<std::string>& ActuatorKinds() {
  static const auto* const kinds =
      new std::vector<std::string>{"process", "kubernetes", "threads", "dry-run"};
  return *kinds;
}

bool SetsTasks(absl::string_view kind) { return kind == "threads" || kind == "dry-run"; }

absl::StatusOr<std::unique_ptr<ActuatorHolder>> OpenActuator(const ActuatorOptions& options,
                                                             base::Clock* clock) {
  if (options.kind == "dry-run") return std::make_unique<DryRun>(options.dry_run, clock);
  if (options.kind == "kubernetes") return OpenKubernetes(options, clock);
  if (options.kind == "process") return OpenProcesses(options.process, clock);
  if (options.kind == "threads") return MakeThreads(options.threads, clock);
  return absl::InvalidArgumentError(absl::StrCat("there is no actuator '", options.kind, "'"));
}

}  // namespace muster::scaling_agent
