#include "services/scaling-agent/actuators.h"

#include <functional>
#include <map>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/actuator_dry_run/dry_run_actuator.h"
#include "muster/actuator_kubernetes/kubernetes_actuator.h"
#include "muster/base/mutex.h"
#include "muster/base/status_macros.h"
#include "muster/kubernetes/access.h"
#include "muster/kubernetes/client.h"
#include "services/scaling-agent/worker_load.h"

namespace muster::scaling_agent {
namespace {

using scaling_rules::Rules;

// Has no replicas of its own: whoever sends heartbeats for a target's queues is there.
class HeardProcessors final : public actuator::Actuator {
 public:
  explicit HeardProcessors(DryRunOptions options) : options_(std::move(options)) {}

  void SetTargets(const Rules& rules) {
    base::MutexLock lock(&mu_);
    queues_.clear();
    for (const scaling_rules::Target& target : rules.targets) queues_[target.id] = target.queues;
  }

  std::string_view kind() const override { return "none"; }
  absl::StatusOr<actuator::TargetState> Observe(std::string_view target) override {
    actuator::TargetState state;
    const std::vector<std::string> queues = QueuesOf(target);
    for (const mesh::RosterEntry& entry : options_.roster()) {
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
  std::vector<std::string> QueuesOf(std::string_view target) {
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
  actuator_dry_run::DryRunActuator actuator_;
};

// Targets of kinds that this platform does not have are NotFound to it, and so told as a trouble.
actuator_kubernetes::Targets WorkloadsOf(const Rules& rules, const std::string& name_space) {
  actuator_kubernetes::Targets targets;
  for (const scaling_rules::Target& target : rules.targets) {
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
  actuator_kubernetes::KubernetesActuator actuator_;
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

absl::StatusOr<std::unique_ptr<ActuatorHolder>> OpenActuator(const ActuatorOptions& options,
                                                             base::Clock* clock) {
  if (options.kind == "dry-run") return std::make_unique<DryRun>(options.dry_run, clock);
  if (options.kind == "kubernetes") return OpenKubernetes(options, clock);
  if (options.kind == "process") return OpenProcesses(options.process, clock);
  if (options.kind == "threads") return MakeThreads(options.threads, clock);
  return absl::InvalidArgumentError(absl::StrCat("there is no actuator '", options.kind, "'"));
}

}  // namespace muster::scaling_agent
