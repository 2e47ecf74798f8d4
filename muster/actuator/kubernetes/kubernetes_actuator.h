// SPDX-License-Identifier: Apache-2.0

// KubernetesActuator: scales Deployments and StatefulSets. ChooseCosts chooses which pods of a
// Deployment go first.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/actuator/actuator.h"
#include "muster/actuator/kubernetes/pod_cache.h"
#include "muster/actuator/orders.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/kubernetes/client.h"
#include "muster/kubernetes/workload.h"

namespace muster::actuator::kubernetes {

struct CostChange {
  std::string pod;
  std::optional<int> cost;  // nullopt: cleared
};

// The changes after which the first `shrink_by` pods of `let_go_first` that exist have deletion
// costs below zero, and no other pod has a cost. At most kMaxMarks pods are marked, in that order;
// one that is marked already keeps its mark, since all of them go: where an order could not mark
// all pods while it was in force, the next one goes on. The list clears costs before it sets any.
std::vector<CostChange> ChooseCosts(const std::vector<muster::kubernetes::Pod>& pods,
                                    const std::vector<std::string>& let_go_first, int shrink_by);

// Converts pods to replicas, leaving out pods that have ended.
std::vector<actuator::Replica> ReplicasOf(const std::vector<muster::kubernetes::Pod>& pods);

// Which pod cannot start, with the reason, and how many more there are of them; empty: none is
// known.
std::string TroubleOf(const std::vector<muster::kubernetes::Pod>& pods);

// Replicas are the pods of a Deployment or a StatefulSet. Its /scale subresource holds their wanted
// number.
//
// Before a Deployment shrinks, the replicas that should go first get the least pod-deletion-cost.
// Kubernetes lets pods that are not ready yet go before it compares costs. A StatefulSet lets its
// highest ordinals go. The number of tasks of a replica cannot be changed through Kubernetes.

// The workloads by the targets' names. An empty namespace means the client's own.
using Targets = std::map<std::string, muster::kubernetes::Workload, std::less<>>;

struct Options {
  Targets targets;
  // True: keeps a watch and a thread for each observed target. False: lists the pods each time.
  bool watches_pods = true;
};

// Thread-safe.
class KubernetesActuator final : public actuator::Actuator {
 public:
  // `client` and `clock` are not owned.
  KubernetesActuator(muster::kubernetes::Client* client, Options options, base::Clock* clock);

  // Replaces the targets after the rules change.
  void SetTargets(Targets targets) ABSL_LOCKS_EXCLUDED(mu_);

  std::string_view kind() const override { return "kubernetes"; }
  absl::StatusOr<actuator::TargetState> Observe(std::string_view target) override
      ABSL_LOCKS_EXCLUDED(mu_);
  // Takes at most kOrderLimit, and writes only while the order is in force. After an error the
  // deletion costs may have changed, but not the number of replicas, unless the answer was lost
  // (Unavailable).
  absl::StatusOr<actuator::Outcome> Apply(const actuator::Order& order) override
      ABSL_LOCKS_EXCLUDED(mu_);

 private:
  absl::StatusOr<muster::kubernetes::Workload> Find(std::string_view target)
      ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<std::vector<muster::kubernetes::Pod>> PodsOf(
      const std::string& target, const muster::kubernetes::Workload& workload,
      const std::string& selector) ABSL_LOCKS_EXCLUDED(mu_);
  // The watch of a target's pods; replaced when the selector or namespace changes. nullptr: the
  // target was removed.
  std::shared_ptr<PodCache> WatchOf(const std::string& target,
                                    const muster::kubernetes::Workload& workload,
                                    const std::string& selector) ABSL_LOCKS_EXCLUDED(mu_);

  // One try on the present scale. Aborted: the scale changed meanwhile, or the order expired.
  absl::StatusOr<actuator::Outcome> TryApply(const actuator::Order& order,
                                             const muster::kubernetes::Workload& workload,
                                             absl::Duration deadline) ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status MarkThoseToGo(const actuator::Order& order,
                             const muster::kubernetes::Workload& workload,
                             const muster::kubernetes::Scale& scale, absl::Duration deadline)
      ABSL_LOCKS_EXCLUDED(mu_);

  muster::kubernetes::Client* const client_;  // not owned
  const bool watches_pods_;
  base::Clock* const clock_;  // not owned
  actuator::OrderGate gate_;

  base::Mutex mu_;
  Targets targets_ ABSL_GUARDED_BY(mu_);
  // Shared with threads that are reading a watch.
  std::map<std::string, std::shared_ptr<PodCache>> watches_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::actuator::kubernetes
