#include "muster/scaling/rules/rules.h"

#include <algorithm>

namespace muster::scaling::rules {

const Target* Rules::FindTarget(absl::string_view id) const {
  const auto found = std::find_if(targets.begin(), targets.end(),
                                  [&](const Target& target) { return target.id == id; });
  return found == targets.end() ? nullptr : &*found;
}

const Operand* Rules::FindOperand(absl::string_view name) const {
  const auto found = std::find_if(operands.begin(), operands.end(),
                                  [&](const Operand& operand) { return operand.name == name; });
  return found == operands.end() ? nullptr : &*found;
}

bool IsQueueMetric(Metric metric) { return metric <= Metric::kFinished; }

Kind KindOfMetric(Metric metric) {
  switch (metric) {
    case Metric::kOldestAge:
    case Metric::kServiceTime:
      return Kind::kTime;
    case Metric::kCpu:
    case Metric::kThrottled:
      return Kind::kShare;
    default:
      return Kind::kPlain;
  }
}

}  // namespace muster::scaling::rules
