#include "services/scaling-agent/actuators.h"

#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/actuator_dry_run/dry_run_actuator.h"
#include "muster/actuator_kubernetes/kubernetes_actuator.h"
#include "muster/base/status_macros.h"
#include "muster/kubernetes/access.h"
#include "muster/kubernetes/client.h"

namespace muster::scaling_agent {
namespace {

using scaling_rules::Rules;

// Has no replicas of its own: whoever sends heartbeats is there.
class NoPlatform final : public actuator::Actuator {
 public:
  std::string_view kind() const override { return "none"; }
  absl::StatusOr<actuator::TargetState> Observe(std::string_view) override {
    return actuator::TargetState();
  }
  absl::StatusOr<actuator::Outcome> Apply(const actuator::Order&) override {
    return absl::UnimplementedError("there is no platform");
  }
};

class DryRun final : public ActuatorHolder {
 public:
  actuator::Actuator* actuator() override { return &actuator_; }
  void Use(const Rules&) override {}

 private:
  NoPlatform nothing_;
  actuator_dry_run::DryRunActuator actuator_{&nothing_};
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
  void Use(const Rules& rules) override { actuator_.SetTargets(WorkloadsOf(rules, name_space_)); }

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
  if (options.kind == "dry-run") return std::make_unique<DryRun>();
  if (options.kind == "kubernetes") return OpenKubernetes(options, clock);
  if (options.kind == "process") return OpenProcesses(options.process, clock);
  if (options.kind == "threads") return MakeThreads(options.threads, clock);
  return absl::InvalidArgumentError(absl::StrCat("there is no actuator '", options.kind, "'"));
}

}  // namespace muster::scaling_agent
