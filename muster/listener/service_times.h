// ServiceTimes: how long handlers took, as a histogram of fixed size.
//
// A time falls into one of kPerOctave buckets between a power of two of microseconds and the next,
// so that a percentile is too large by 9% at the most. From 1 µs to some days; what is outside
// counts as the nearest.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"

namespace muster::listener {

// Not thread-safe.
class ServiceTimes {
 public:
  void Add(absl::Duration time);

  int64_t count() const { return count_; }
  // Zero when there are none.
  absl::Duration Mean() const;
  // What a `share` of the times, 0 to 1, does not exceed.
  absl::Duration Percentile(double share) const;

  // Those that were added since `earlier`, which this was once.
  ServiceTimes Since(const ServiceTimes& earlier) const;

 private:
  static constexpr int kPerOctave = 8;
  static constexpr int kOctaves = 40;
  static constexpr size_t kBuckets = size_t{kPerOctave} * kOctaves;

  static size_t BucketOf(absl::Duration time);
  // The longest time of a bucket.
  static absl::Duration EndOf(size_t bucket);

  std::array<int64_t, kBuckets> buckets_ = {};
  int64_t count_ = 0;
  absl::Duration total_;
};

}  // namespace muster::listener
