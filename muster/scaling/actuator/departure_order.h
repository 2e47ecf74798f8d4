// ScaleDownOrder: who goes first when a target shrinks, where the actuator has the choice.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/scaling/actuator/actuator.h"

namespace muster::scaling::actuator {

// Those first that the order names, as it names them; then those that are not ready, then the ready
// ones, each time the newest first, and of equals by name.
class ScaleDownOrder {
 public:
  using Rank = std::tuple<size_t, bool, absl::Duration, absl::string_view>;

  // `let_go_first` outlives it.
  explicit ScaleDownOrder(const std::vector<std::string>& let_go_first);

  // Who has the lower one goes first. Holds `name`.
  Rank RankOf(absl::string_view name, ReplicaState state, absl::Time started) const;

 private:
  std::map<absl::string_view, size_t> wishes_;
};

}  // namespace muster::scaling::actuator
