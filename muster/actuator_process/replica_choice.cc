#include "muster/actuator_process/replica_choice.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <tuple>

#include "absl/strings/string_view.h"

namespace muster::actuator_process {

std::vector<std::string> ChooseToGo(std::vector<actuator::Replica> replicas,
                                    const std::vector<std::string>& let_go_first, int count) {
  std::map<absl::string_view, size_t> wishes;
  for (size_t i = 0; i < let_go_first.size(); ++i) wishes.emplace(let_go_first[i], i);
  const auto rank = [&](const actuator::Replica& replica) {
    const auto wish = wishes.find(replica.name);
    return std::tuple(wish == wishes.end() ? let_go_first.size() : wish->second,
                      replica.state == actuator::ReplicaState::kReady,
                      -absl::ToUnixNanos(replica.started), absl::string_view(replica.name));
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
