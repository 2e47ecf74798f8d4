// SPDX-License-Identifier: Apache-2.0

// Replay: compares several policies on one trace.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/scaling/replay/metrics.h"
#include "muster/scaling/replay/options.h"
#include "muster/scaling/replay/policy_catalog.h"
#include "muster/scaling/replay/trace.h"

namespace muster::scaling::replay {

struct ReplayRow {
  std::string policy;
  std::string settings;
  Metrics metrics;  // of all seeds together
  double cost_over_oracle = 0;
};

struct ReplayRequest {
  SimOptions options;  // with its first seed
  int seeds = 1;       // this many, counted up from options.seed
  std::vector<PolicyEntry> policies;
  // Returns the sink for a policy's points of the first seed; may be empty.
  std::function<SeriesSink(const PolicyEntry&)> sink_of;
};

// One row per policy, in their order. InvalidArgument: see Check. OutOfRange: the trace holds more
// work, or for service by the item more items, than options.h allows.
absl::StatusOr<std::vector<ReplayRow>> Replay(const Trace& trace, const ReplayRequest& request);

}  // namespace muster::scaling::replay
