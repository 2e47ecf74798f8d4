// SPDX-License-Identifier: Apache-2.0

// Spending: what the budget of a target has counted so far. It outlives the policy that counted it:
// the hour of a budget goes on when another policy decides.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/time/time.h"

namespace muster::scaling::policy {

struct Spending {
  absl::Time until;  // up to when it is counted
  int replicas = 0;  // that there were then
  // The minutes of the clock since 1970, oldest first, and the replica-minutes of each.
  std::vector<std::pair<int64_t, double>> minutes;

  bool operator==(const Spending&) const = default;
};

}  // namespace muster::scaling::policy
