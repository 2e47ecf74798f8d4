// SPDX-License-Identifier: Apache-2.0
#include "muster/listener/metrics.h"

#include <algorithm>
#include <cmath>

#include "muster/base/check.h"

namespace muster::listener {

void ServiceTimes::Add(absl::Duration time) {
  ++buckets_[BucketOf(time)];
  ++count_;
  total_ += time;
}

absl::Duration ServiceTimes::Mean() const {
  return count_ == 0 ? absl::ZeroDuration() : total_ / count_;
}

absl::Duration ServiceTimes::Percentile(double share) const {
  if (count_ == 0) return absl::ZeroDuration();
  const auto rank = std::max<int64_t>(1, std::llround(std::ceil(share * count_)));
  int64_t seen = 0;
  for (size_t bucket = 0; bucket < kBuckets; ++bucket) {
    seen += buckets_[bucket];
    if (seen >= rank) return EndOf(bucket);
  }
  return EndOf(kBuckets - 1);
}

ServiceTimes ServiceTimes::Since(const ServiceTimes& earlier) const {
  ServiceTimes since = *this;
  for (size_t bucket = 0; bucket < kBuckets; ++bucket) {
    since.buckets_[bucket] -= earlier.buckets_[bucket];
  }
  since.count_ -= earlier.count_;
  since.total_ -= earlier.total_;
  return since;
}

size_t ServiceTimes::BucketOf(absl::Duration time) {
  const double microseconds = absl::ToDoubleMicroseconds(time);
  if (!(microseconds > 1)) return 0;
  const double bucket = std::ceil(std::log2(microseconds) * kPerOctave);
  return static_cast<size_t>(std::min(bucket, double{kBuckets - 1}));
}

absl::Duration ServiceTimes::EndOf(size_t bucket) {
  return absl::Microseconds(std::exp2(static_cast<double>(bucket) / kPerOctave));
}

void WorkMeter::Served(absl::Duration time) {
  base::MutexLock lock(&mu_);
  times_.service.Add(time);
}

WorkTimes WorkMeter::Read() const {
  base::MutexLock lock(&mu_);
  WorkTimes times = times_;
  AddLapseLocked(&times);
  return times;
}

void WorkMeter::Change(int tasks, int busy_tasks) {
  base::MutexLock lock(&mu_);
  changed_at_ = AddLapseLocked(&times_);
  times_.tasks += tasks;
  times_.busy_tasks += busy_tasks;
  MUSTER_CHECK(times_.busy_tasks >= 0 && times_.busy_tasks <= times_.tasks, "tasks ", times_.tasks,
               ", busy ", times_.busy_tasks);
}

absl::Duration WorkMeter::AddLapseLocked(WorkTimes* times) const {
  const absl::Duration now = clock_->Monotonic();
  times->running += times->tasks * (now - changed_at_);
  times->busy += times->busy_tasks * (now - changed_at_);
  return now;
}

}  // namespace muster::listener
