#include "muster/actuator_process/replica_choice.h"

#include <algorithm>

#include "muster/actuator/departure_order.h"

namespace muster::actuator_process {

std::vector<std::string> ChooseForScaleDown(std::vector<actuator::Replica> replicas,
                                            const std::vector<std::string>& let_go_first,
                                            int count) {
  const actuator::ScaleDownOrder order(let_go_first);
  const auto rank = [&order](const actuator::Replica& replica) {
    return order.RankOf(replica.name, replica.state, replica.started);
  };
  std::sort(replicas.begin(), replicas.end(),
            [&rank](const auto& a, const auto& b) { return rank(a) < rank(b); });
  std::vector<std::string> names;
  for (const actuator::Replica& replica : replicas) {
    if (static_cast<int>(names.size()) >= count) break;
    names.push_back(replica.name);
  }
  return names;
}

}  // namespace muster::actuator_process
