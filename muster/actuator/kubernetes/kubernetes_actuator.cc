// SPDX-License-Identifier: Apache-2.0
#include "muster/actuator/kubernetes/kubernetes_actuator.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "muster/base/status.h"
#include "muster/kubernetes/limits.h"

namespace muster::actuator::kubernetes {

namespace {

// The pods of `wishes` that exist and are not ending, each once, best first.
std::vector<std::string> Goers(const std::vector<muster::kubernetes::Pod>& pods,
                               const std::vector<std::string>& wishes, int shrink_by) {
  std::set<std::string> present;
  for (const muster::kubernetes::Pod& pod : pods) {
    if (!pod.is_over() && !pod.deleted) present.insert(pod.name);
  }
  const size_t most = static_cast<size_t>(std::clamp(shrink_by, 0, kMaxMarks));
  std::vector<std::string> goers;
  for (const std::string& wish : wishes) {
    if (goers.size() == most) break;
    if (present.erase(wish) > 0) goers.push_back(wish);
  }
  return goers;
}

// Whether its cost lets it go before the pods that have none.
bool IsMarked(const muster::kubernetes::Pod& pod) {
  int cost = 0;
  return pod.deletion_cost.has_value() && absl::SimpleAtoi(*pod.deletion_cost, &cost) && cost < 0;
}

actuator::ReplicaState StateOf(const muster::kubernetes::Pod& pod) {
  if (pod.deleted) return actuator::ReplicaState::kDraining;
  return pod.ready ? actuator::ReplicaState::kReady : actuator::ReplicaState::kStarting;
}

}  // namespace

std::vector<CostChange> ChooseCosts(const std::vector<muster::kubernetes::Pod>& pods,
                                    const std::vector<std::string>& let_go_first, int shrink_by) {
  const std::vector<std::string> goers = Goers(pods, let_go_first, shrink_by);
  std::map<std::string, int> costs;
  // Negative costs, because a pod without a cost counts as 0.
  int cost = -static_cast<int>(goers.size());
  for (const std::string& goer : goers) costs[goer] = cost++;

  std::vector<CostChange> cleared, marked;
  for (const muster::kubernetes::Pod& pod : pods) {
    if (pod.is_over() || pod.deleted) continue;
    const auto wanted = costs.find(pod.name);
    if (wanted == costs.end()) {
      if (pod.deletion_cost.has_value()) cleared.push_back({pod.name, std::nullopt});
    } else if (!IsMarked(pod)) {
      marked.push_back({pod.name, wanted->second});
    }
  }
  cleared.insert(cleared.end(), marked.begin(), marked.end());
  return cleared;
}

std::vector<actuator::Replica> ReplicasOf(const std::vector<muster::kubernetes::Pod>& pods) {
  std::vector<actuator::Replica> replicas;
  for (const muster::kubernetes::Pod& pod : pods) {
    if (pod.is_over()) continue;
    replicas.push_back({pod.name, pod.name, StateOf(pod), pod.started});
  }
  return replicas;
}

std::string TroubleOf(const std::vector<muster::kubernetes::Pod>& pods) {
  const muster::kubernetes::Pod* first = nullptr;
  int others = -1;
  for (const muster::kubernetes::Pod& pod : pods) {
    if (pod.is_over() || pod.trouble.empty()) continue;
    if (first == nullptr) first = &pod;
    ++others;
  }
  if (first == nullptr) return "";
  return absl::StrCat("pod ", first->name,
                      others == 0 ? "" : absl::StrCat(" and ", others, " more"),
                      " cannot start: ", first->trouble);
}

namespace {

using muster::kubernetes::WorkloadKind;

std::string NameOf(const muster::kubernetes::Workload& workload) {
  return absl::StrCat(workload.kind == WorkloadKind::kDeployment ? "deployment " : "statefulset ",
                      workload.name_space, "/", workload.name);
}

std::string DetailOf(const actuator::Order& order, const muster::kubernetes::Workload& workload,
                     int before) {
  std::string text = NameOf(workload);
  if (order.replicas == before) return absl::StrCat(text, " has been told ", before, " before");
  absl::StrAppend(&text, " from ", before, " to ", order.replicas, " replicas");
  if (order.replicas > before || order.let_go_first.empty()) return text;
  if (workload.kind == WorkloadKind::kStatefulSet) {
    return absl::StrCat(text,
                        "; a StatefulSet lets its highest ordinals go, not those that were chosen");
  }
  return absl::StrCat(text, "; those with the fewest leases go first");
}

}  // namespace

KubernetesActuator::KubernetesActuator(muster::kubernetes::Client* client, Options options,
                                       base::Clock* clock)
    : client_(client),
      watches_pods_(options.watches_pods),
      clock_(clock),
      gate_(clock),
      targets_(std::move(options.targets)) {}

void KubernetesActuator::SetTargets(Targets targets) {
  // Declared before the lock, so that the watches' threads end after the lock is released.
  std::map<std::string, std::shared_ptr<PodCache>> ended;
  base::MutexLock lock(&mu_);
  targets_ = std::move(targets);
  for (auto watch = watches_.begin(); watch != watches_.end();) {
    const auto next = std::next(watch);
    if (targets_.count(watch->first) == 0) ended.insert(watches_.extract(watch));
    watch = next;
  }
}

absl::StatusOr<muster::kubernetes::Workload> KubernetesActuator::Find(std::string_view target) {
  base::MutexLock lock(&mu_);
  const auto found = targets_.find(target);
  if (found == targets_.end()) {
    return absl::NotFoundError(absl::StrCat("there is no target '", std::string(target), "'"));
  }
  muster::kubernetes::Workload workload = found->second;
  if (workload.name_space.empty()) workload.name_space = client_->default_namespace();
  return workload;
}

absl::StatusOr<actuator::TargetState> KubernetesActuator::Observe(std::string_view target) {
  MUSTER_ASSIGN_OR_RETURN(const muster::kubernetes::Workload workload, Find(target));
  MUSTER_ASSIGN_OR_RETURN(const muster::kubernetes::Scale scale, ReadScale(client_, workload));
  MUSTER_ASSIGN_OR_RETURN(const std::vector<muster::kubernetes::Pod> pods,
                          PodsOf(std::string(target), workload, scale.selector));
  return actuator::TargetState{scale.replicas, ReplicasOf(pods), TroubleOf(pods)};
}

absl::StatusOr<std::vector<muster::kubernetes::Pod>> KubernetesActuator::PodsOf(
    const std::string& target, const muster::kubernetes::Workload& workload,
    const std::string& selector) {
  if (watches_pods_ && !selector.empty()) {
    const auto watch = WatchOf(target, workload, selector);
    auto watched = watch == nullptr ? std::nullopt : watch->Current();
    if (watched.has_value()) return *std::move(watched);
  }
  return muster::kubernetes::ListPods(client_, workload.name_space, selector);
}

std::shared_ptr<PodCache> KubernetesActuator::WatchOf(const std::string& target,
                                                      const muster::kubernetes::Workload& workload,
                                                      const std::string& selector) {
  std::shared_ptr<PodCache> replaced;
  base::MutexLock lock(&mu_);
  if (targets_.count(target) == 0) return nullptr;
  std::shared_ptr<PodCache>& watch = watches_[target];
  if (watch == nullptr || watch->selector() != selector ||
      watch->name_space() != workload.name_space) {
    replaced = std::exchange(
        watch, std::make_shared<PodCache>(client_, workload.name_space, selector, clock_));
  }
  return watch;
}

absl::StatusOr<actuator::Outcome> KubernetesActuator::Apply(const actuator::Order& order) {
  MUSTER_RETURN_IF_ERROR(gate_.Admit(order));
  MUSTER_ASSIGN_OR_RETURN(const muster::kubernetes::Workload workload, Find(order.target));
  const absl::Duration deadline = clock_->Monotonic() + kOrderLimit;
  for (int conflicts = 0; conflicts < muster::kubernetes::kMaxConflicts; ++conflicts) {
    auto outcome = TryApply(order, workload, deadline);
    if (!absl::IsAborted(outcome.status())) return outcome;
    MUSTER_RETURN_IF_ERROR(gate_.Admit(order));
    if (clock_->Monotonic() >= deadline) break;
  }
  return absl::UnavailableError(absl::StrCat("the scale of ", NameOf(workload),
                                             " changes again and again while it is written"));
}

// Two checks keep the writes of two leaders apart. First, each write comes right after a check that
// the order is still in force (gate_.Admit). Second, if an agent stalls between that check and its
// write, the write fails by its version when a later leader has written in between; and if the
// later leader has only read by then, the later leader's write fails and is repeated. One gap
// remains: a later leader that finds the right number writes nothing, so a delayed write of the
// earlier leader can still succeed. The next order corrects it.
absl::StatusOr<actuator::Outcome> KubernetesActuator::TryApply(
    const actuator::Order& order, const muster::kubernetes::Workload& workload,
    absl::Duration deadline) {
  MUSTER_ASSIGN_OR_RETURN(const muster::kubernetes::Scale scale, ReadScale(client_, workload));
  actuator::Outcome outcome{scale.replicas, order.replicas,
                            DetailOf(order, workload, scale.replicas)};
  if (order.replicas < scale.replicas && workload.kind == WorkloadKind::kDeployment) {
    MUSTER_RETURN_IF_ERROR(MarkThoseToGo(order, workload, scale, deadline));
  }
  MUSTER_RETURN_IF_ERROR(gate_.Admit(order));
  if (order.replicas == scale.replicas) return outcome;
  MUSTER_RETURN_IF_ERROR(WriteScale(client_, workload, scale, order.replicas));
  return outcome;
}

absl::Status KubernetesActuator::MarkThoseToGo(const actuator::Order& order,
                                               const muster::kubernetes::Workload& workload,
                                               const muster::kubernetes::Scale& scale,
                                               absl::Duration deadline) {
  // List the pods here, because the watch may lag behind the changes of the last order.
  MUSTER_ASSIGN_OR_RETURN(
      const std::vector<muster::kubernetes::Pod> pods,
      muster::kubernetes::ListPods(client_, workload.name_space, scale.selector));
  const int shrink_by = scale.replicas - order.replicas;
  for (const CostChange& change : ChooseCosts(pods, order.let_go_first, shrink_by)) {
    if (clock_->Monotonic() >= deadline) {
      return absl::UnavailableError(
          absl::StrCat("the pods of ", NameOf(workload), " take too long to mark"));
    }
    MUSTER_RETURN_IF_ERROR(gate_.Admit(order));
    MUSTER_RETURN_IF_ERROR(
        muster::kubernetes::SetDeletionCost(client_, workload.name_space, change.pod, change.cost));
  }
  return absl::OkStatus();
}

}  // namespace muster::actuator::kubernetes
