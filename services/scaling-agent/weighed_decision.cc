// SPDX-License-Identifier: Apache-2.0
#include "services/scaling-agent/weighed_decision.h"

#include <algorithm>

namespace muster::scaling_agent {

void KeepAtLeast(int there, Weighed* weighed) {
  scaling::policy::Decision& decided = weighed->decided;
  if (decided.replicas + decided.standby >= there) return;
  decided.replicas = there - decided.standby;
  decided.binding = scaling::policy::Binding::kNoMetrics;
  weighed->is_blind = true;
}

void KeepWaiting(Weighed* weighed) {
  if (weighed->waiting == 0) return;
  scaling::policy::Decision& decided = weighed->decided;
  const int total = decided.replicas + decided.standby;
  const int there = weighed->observation.fleet.committed() + weighed->observation.fleet.parked;
  // At most what exists: so the number does not feed on itself.
  decided.replicas += std::max(0, weighed->waiting + std::min(there, total) - total);
}

void Demand(const std::optional<Override>& override, const scaling::rules::Range& range,
            Weighed* weighed) {
  weighed->override = override;
  if (!override.has_value()) return;
  weighed->decided.replicas = std::clamp(override->replicas, range.min, range.max);
  weighed->decided.standby = 0;
  weighed->decided.binding = scaling::policy::Binding::kOverride;
  weighed->is_blind = false;
}

void BoundStandby(int most, Weighed* weighed) {
  scaling::policy::Decision& decided = weighed->decided;
  decided.standby = std::clamp(decided.standby, 0, std::max(0, most - decided.replicas));
}

}  // namespace muster::scaling_agent
