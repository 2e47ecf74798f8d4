// What stays when the queues' statistics cannot be had: `on_metric_loss` of the rules.
#pragma once

#include "muster/scaling/policy/observation.h"

namespace muster::scaling::policy {

struct MetricLossRule {
  int after = 3;             // looks in a row without statistics until the rule holds
  bool keep_current = true;  // keep: current, or max(current, floor)
  int floor = 0;             // keep: floor, or max(current, floor)

  // What stays, within the bounds.
  int Keep(int current, const Bounds& bounds) const;
};

}  // namespace muster::scaling::policy
