#include "muster/scaling/actuator/departure_order.h"

namespace muster::scaling::actuator {

ScaleDownOrder::ScaleDownOrder(const std::vector<std::string>& let_go_first) {
  for (const std::string& name : let_go_first) wishes_.emplace(name, wishes_.size());
}

ScaleDownOrder::Rank ScaleDownOrder::RankOf(absl::string_view name, ReplicaState state,
                                            absl::Time started) const {
  const auto wish = wishes_.find(name);
  return {wish == wishes_.end() ? wishes_.size() : wish->second, state == ReplicaState::kReady,
          absl::UnixEpoch() - started, name};
}

}  // namespace muster::scaling::actuator
