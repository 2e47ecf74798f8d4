#include "muster/scaling/policy/metric_loss.h"

#include <algorithm>

namespace muster::scaling::policy {

int MetricLossRule::Keep(int current, const Bounds& bounds) const {
  const int kept = std::max(keep_current ? current : 0, floor);
  return std::max(bounds.min, std::min(kept, bounds.max));
}

}  // namespace muster::scaling::policy
