// SPDX-License-Identifier: Apache-2.0
#include "muster/actuator/orders.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace muster::actuator {

absl::Status OrderGate::Admit(const Order& order) {
  if (order.replicas < 0 || order.tasks < 0) {
    return absl::InvalidArgumentError(absl::StrCat("target '", order.target, "' cannot have ",
                                                   order.replicas, " replicas of ", order.tasks,
                                                   " tasks"));
  }
  if (clock_->Monotonic() >= order.not_after) {
    return absl::AbortedError(absl::StrCat("decision '", order.decision, "' for target '",
                                           order.target,
                                           "' comes too late: ", "the lead may have run out"));
  }
  base::MutexLock lock(&mu_);
  if (order.fencing_token < highest_) return StaleToken(order, highest_);
  highest_ = std::max(highest_, order.fencing_token);
  return absl::OkStatus();
}

absl::Status StaleToken(const Order& order, int64_t known) {
  return absl::FailedPreconditionError(absl::StrCat("decision '", order.decision, "' for target '",
                                                    order.target,
                                                    "' comes from an agent that no "
                                                    "longer leads: its fencing token ",
                                                    order.fencing_token, " is lower than ", known));
}

ScaleDownOrder::ScaleDownOrder(const std::vector<std::string>& let_go_first) {
  for (const std::string& name : let_go_first) wishes_.emplace(name, wishes_.size());
}

ScaleDownOrder::Rank ScaleDownOrder::RankOf(absl::string_view name, ReplicaState state,
                                            absl::Time started) const {
  const auto wish = wishes_.find(name);
  return {wish == wishes_.end() ? wishes_.size() : wish->second, state == ReplicaState::kReady,
          absl::UnixEpoch() - started, name};
}

std::vector<std::string> ChooseForScaleDown(std::vector<Replica> replicas,
                                            const std::vector<std::string>& let_go_first,
                                            int count) {
  const ScaleDownOrder order(let_go_first);
  const auto rank = [&order](const Replica& replica) {
    return order.RankOf(replica.name, replica.state, replica.started);
  };
  std::sort(replicas.begin(), replicas.end(),
            [&rank](const auto& a, const auto& b) { return rank(a) < rank(b); });
  std::vector<std::string> names;
  for (const Replica& replica : replicas) {
    if (static_cast<int>(names.size()) >= count) break;
    names.push_back(replica.name);
  }
  return names;
}

}  // namespace muster::actuator
