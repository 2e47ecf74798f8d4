// Which pods go first when a Deployment shrinks, as costs that Kubernetes compares.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "muster/kubernetes/pod.h"
#include "muster/scaling/actuator/actuator.h"

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

}  // namespace muster::scaling::actuator::kubernetes
