#include "muster/scaling/rules/metric_window.h"

#include <algorithm>
#include <cmath>

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

// The slope of the line that lies nearest to all samples (least squares), the samples of a bucket
// taken together: one that jumps at the window's end does not decide alone.
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

}  // namespace muster::scaling::rules
