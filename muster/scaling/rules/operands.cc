// SPDX-License-Identifier: Apache-2.0
#include "muster/scaling/rules/operands.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "muster/scaling/rules/limits.h"

namespace muster::scaling::rules {

MetricWindow::MetricWindow(Aggregate aggregate, absl::Duration over)
    : aggregate_(aggregate), over_(aggregate == Aggregate::kLast ? kStaleAfter : over) {}

void MetricWindow::Add(absl::Time at, double value) {
  if (!std::isfinite(value)) return;
  if (!buckets_.empty() && at <= buckets_.back().last) return;
  if (aggregate_ == Aggregate::kLast) buckets_.clear();
  if (buckets_.empty() || at >= buckets_.back().first + over_ / kMetricBuckets) {
    buckets_.push_back({.first = at, .last = at, .min = value, .max = value});
  }
  Bucket& bucket = buckets_.back();
  bucket.last = at;
  bucket.count += 1;
  bucket.sum += value;
  bucket.min = std::min(bucket.min, value);
  bucket.max = std::max(bucket.max, value);
  bucket.newest = value;
  bucket.seconds += absl::ToDoubleSeconds(at - bucket.first);
  while (buckets_.front().last < at - over_) buckets_.pop_front();
}

std::optional<double> MetricWindow::Value(absl::Time now) const {
  if (buckets_.empty()) return std::nullopt;
  if (buckets_.back().last < now - std::min(over_, kStaleAfter)) return std::nullopt;
  const absl::Time since = now - over_;
  const auto first = std::find_if(buckets_.begin(), buckets_.end(),
                                  [&](const Bucket& bucket) { return bucket.last >= since; });
  if (aggregate_ == Aggregate::kLast) return buckets_.back().newest;
  if (aggregate_ == Aggregate::kGrowth) return Growth(since);
  double count = 0, sum = 0, min = first->min, max = first->max;
  for (auto bucket = first; bucket != buckets_.end(); ++bucket) {
    count += bucket->count;
    sum += bucket->sum;
    min = std::min(min, bucket->min);
    max = std::max(max, bucket->max);
  }
  if (aggregate_ == Aggregate::kAverage) return sum / count;
  return aggregate_ == Aggregate::kMin ? min : max;
}

// The slope of the least-squares line through the buckets' means, weighted by samples: a single
// jump at the window's end does not decide alone.
std::optional<double> MetricWindow::Growth(absl::Time since) const {
  const absl::Time begin = std::max(since, buckets_.front().first);
  if (buckets_.back().last - begin < over_ / 2) return std::nullopt;
  double count = 0, sum_t = 0, sum_v = 0, sum_tt = 0, sum_tv = 0;
  for (const Bucket& bucket : buckets_) {
    if (bucket.last < since) continue;
    const double t = absl::ToDoubleMinutes(bucket.middle() - begin);
    count += bucket.count;
    sum_t += bucket.count * t;
    sum_v += bucket.count * bucket.mean();
    sum_tt += bucket.count * t * t;
    sum_tv += bucket.count * t * bucket.mean();
  }
  const double spread = count * sum_tt - sum_t * sum_t;
  if (!(spread > 0)) return std::nullopt;
  return (count * sum_tv - sum_t * sum_v) / spread;
}

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
