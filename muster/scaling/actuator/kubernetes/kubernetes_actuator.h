// Which pods go first when a Deployment shrinks, as costs that Kubernetes compares.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/kubernetes/client.h"
#include "muster/kubernetes/workload.h"
#include "muster/scaling/actuator/actuator.h"
#include "muster/scaling/actuator/kubernetes/pod_cache.h"
#include "muster/scaling/actuator/orders.h"

namespace muster::scaling::actuator::kubernetes {

struct CostChange {
  std::string pod;
  std::optional<int> cost;  // nullopt: cleared
};

// What has to change so that, of `pods`, the first `shrink_by` that are there and are named in
// `let_go_first` cost least, in that order, and no other has a cost. At most kMaxMarks pods are
// marked; costs are cleared first.
std::vector<CostChange> ChooseCosts(const std::vector<muster::kubernetes::Pod>& pods,
                                    const std::vector<std::string>& let_go_first, int shrink_by);

// The replicas that these pods are; those that have ended are none.
std::vector<scaling::actuator::Replica> ReplicasOf(
    const std::vector<muster::kubernetes::Pod>& pods);

// KubernetesActuator: replicas are the pods of a Deployment or a StatefulSet, whose /scale says how
// many there shall be.
//
// Before a Deployment shrinks, the replicas that should go first get the least pod-deletion-cost.
// Pods that are not ready yet go before all others, whatever they cost. A StatefulSet lets its
// highest ordinals go. How many tasks a replica has is not Kubernetes' to change.

// By the targets' names. An empty namespace is the client's own.
using Targets = std::map<std::string, muster::kubernetes::Workload, std::less<>>;

struct Options {
  Targets targets;
  // Keeps a watch, and a thread, for each target that was looked at; else pods are listed each
  // time.
  bool watches_pods = true;
};

// Thread-safe.
class KubernetesActuator final : public scaling::actuator::Actuator {
 public:
  // `client` and `clock` are not owned.
  KubernetesActuator(muster::kubernetes::Client* client, Options options, base::Clock* clock);

  // From now on these are the targets: the rules have changed.
  void SetTargets(Targets targets);

  std::string_view kind() const override { return "kubernetes"; }
  absl::StatusOr<scaling::actuator::TargetState> Observe(std::string_view target) override;
  // Within kOrderLimit, and while its giver leads. Upon an error the costs may have changed, and
  // the number has not, save where the answer was lost (Unavailable).
  absl::StatusOr<scaling::actuator::Outcome> Apply(const scaling::actuator::Order& order) override;

 private:
  absl::StatusOr<muster::kubernetes::Workload> Find(std::string_view target);
  absl::StatusOr<std::vector<muster::kubernetes::Pod>> PodsOf(
      const std::string& target, const muster::kubernetes::Workload& workload,
      const std::string& selector);
  // The watch of a target's pods; a new one where it is of others. nullptr: it is no target any
  // more.
  std::shared_ptr<PodCache> WatchOf(const std::string& target,
                                    const muster::kubernetes::Workload& workload,
                                    const std::string& selector);

  // One try upon what is there now. Aborted: it changed meanwhile, or the order's moment passed.
  absl::StatusOr<scaling::actuator::Outcome> TryApply(const scaling::actuator::Order& order,
                                                      const muster::kubernetes::Workload& workload,
                                                      absl::Duration deadline);
  absl::Status MarkThoseToGo(const scaling::actuator::Order& order,
                             const muster::kubernetes::Workload& workload,
                             const muster::kubernetes::Scale& scale, absl::Duration deadline);

  muster::kubernetes::Client* const client_;  // not owned
  const bool watches_pods_;
  base::Clock* const clock_;  // not owned
  scaling::actuator::OrderGate gate_;

  base::Mutex mu_;
  Targets targets_ ABSL_GUARDED_BY(mu_);
  // Shared with those who read them at the moment.
  std::map<std::string, std::shared_ptr<PodCache>> watches_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::scaling::actuator::kubernetes
