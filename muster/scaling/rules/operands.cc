#include "muster/scaling/rules/operands.h"

#include <utility>

namespace muster::scaling::rules {
namespace {

bool IsSame(const Operand& a, const Operand& b) {
  return a.target == b.target && a.queue == b.queue && a.metric == b.metric &&
         a.aggregate == b.aggregate && a.over == b.over;
}

double QueueValue(const scaling::policy::QueueReading& reading, Metric metric) {
  switch (metric) {
    case Metric::kInFlight:
      return static_cast<double>(reading.in_flight);
    case Metric::kOldestAge:
      return absl::ToDoubleSeconds(reading.oldest_age);
    case Metric::kArrived:
      return static_cast<double>(reading.total_in);
    case Metric::kFinished:
      return static_cast<double>(reading.total_out);
    default:
      return static_cast<double>(reading.ready);
  }
}

std::optional<double> TargetValue(const scaling::policy::Observation& observation, Metric metric) {
  const scaling::policy::Fleet& fleet = observation.fleet;
  switch (metric) {
    case Metric::kReplicas:
      return fleet.ready;
    case Metric::kStarting:
      return static_cast<double>(fleet.starting.size());
    case Metric::kIdle:
      return static_cast<double>(fleet.idle_since.size());
    default:
      break;
  }
  if (fleet.ready == 0) return std::nullopt;
  if (metric == Metric::kCpu) return 100 * observation.estimates.cpu_share;
  if (metric == Metric::kThrottled) return 100 * observation.estimates.throttled_share;
  return absl::ToDoubleSeconds(observation.estimates.service_time);
}

}  // namespace

void Operands::Use(const Rules& rules, absl::string_view target) {
  std::map<std::string, Measured> kept;
  for (const Operand& operand : rules.operands) {
    if (operand.target != target) continue;
    const auto old = operands_.find(operand.name);
    if (old != operands_.end() && IsSame(old->second.operand, operand)) {
      kept.insert(operands_.extract(old));
    } else {
      kept.emplace(operand.name, Measured{operand, MetricWindow(operand.aggregate, operand.over)});
    }
  }
  operands_ = std::move(kept);
}

void Operands::StepBack() {
  for (auto& [name, measured] : operands_) {
    measured.window = MetricWindow(measured.operand.aggregate, measured.operand.over);
  }
}

void Operands::Observe(const scaling::policy::Observation& observation) {
  for (auto& [name, measured] : operands_) {
    const Operand& operand = measured.operand;
    if (operand.queue.empty()) {
      const std::optional<double> value = TargetValue(observation, operand.metric);
      if (value) measured.window.Add(observation.now, *value);
      continue;
    }
    for (const scaling::policy::QueueReading& reading : observation.queues) {
      if (reading.queue != operand.queue) continue;
      measured.window.Add(reading.at, QueueValue(reading, operand.metric));
    }
  }
}

std::optional<double> Operands::Value(absl::string_view name, absl::Time now) const {
  const auto found = operands_.find(std::string(name));
  return found == operands_.end() ? std::nullopt : found->second.window.Value(now);
}

}  // namespace muster::scaling::rules
