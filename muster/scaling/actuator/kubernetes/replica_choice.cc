#include "muster/scaling/actuator/kubernetes/replica_choice.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "muster/scaling/actuator/kubernetes/limits.h"

namespace muster::scaling::actuator::kubernetes {
namespace {

// Those of `wishes` that can go, each once, best first.
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

scaling::actuator::ReplicaState StateOf(const muster::kubernetes::Pod& pod) {
  if (pod.deleted) return scaling::actuator::ReplicaState::kDraining;
  return pod.ready ? scaling::actuator::ReplicaState::kReady
                   : scaling::actuator::ReplicaState::kStarting;
}

}  // namespace

std::vector<CostChange> ChooseCosts(const std::vector<muster::kubernetes::Pod>& pods,
                                    const std::vector<std::string>& let_go_first, int shrink_by) {
  const std::vector<std::string> goers = Goers(pods, let_go_first, shrink_by);
  std::map<std::string, int> costs;
  // Below 0, which is what a pod without a cost has.
  int cost = -static_cast<int>(goers.size());
  for (const std::string& goer : goers) costs[goer] = cost++;

  std::vector<CostChange> cleared, marked;
  for (const muster::kubernetes::Pod& pod : pods) {
    if (pod.is_over() || pod.deleted) continue;
    const auto wanted = costs.find(pod.name);
    if (wanted == costs.end()) {
      if (pod.deletion_cost.has_value()) cleared.push_back({pod.name, std::nullopt});
    } else if (pod.deletion_cost != absl::StrCat(wanted->second)) {
      marked.push_back({pod.name, wanted->second});
    }
  }
  cleared.insert(cleared.end(), marked.begin(), marked.end());
  return cleared;
}

std::vector<scaling::actuator::Replica> ReplicasOf(
    const std::vector<muster::kubernetes::Pod>& pods) {
  std::vector<scaling::actuator::Replica> replicas;
  for (const muster::kubernetes::Pod& pod : pods) {
    if (pod.is_over()) continue;
    replicas.push_back({pod.name, pod.name, StateOf(pod), pod.started});
  }
  return replicas;
}

}  // namespace muster::scaling::actuator::kubernetes
