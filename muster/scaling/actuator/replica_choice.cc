#include "muster/scaling/actuator/replica_choice.h"

#include <algorithm>

#include "muster/scaling/actuator/departure_order.h"

namespace muster::scaling::actuator {

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

}  // namespace muster::scaling::actuator
