// LatencyHistogram: percentiles of millions of latencies in a fixed amount of memory.
#pragma once

#include <cstdint>
#include <vector>

namespace muster::scaling::replay {

// A bin is a millisecond wide, or a thousandth of its latency, whichever is more, so a percentile
// is too high by at most 1 ms or 0.1 %; the maximum is exact.
class LatencyHistogram {
 public:
  LatencyHistogram();

  // `latency_us` is at least 0.
  void Add(int64_t latency_us, int64_t items);
  // `items` whose latencies lie evenly from `first_us` to `last_us`, in either order. More than
  // kPortions are put in as so many equal portions.
  void AddRange(int64_t first_us, int64_t last_us, int64_t items);
  void Merge(const LatencyHistogram& other);

  int64_t items() const { return items_; }
  int64_t max_us() const { return max_us_; }
  // The upper end of the bin in which the item stands that `share` (0 to 1) of all items, rounded
  // up, are no slower than; at most max_us(). 0 without items.
  int64_t Percentile(double share) const;

  static constexpr int64_t kPortions = 16;

 private:
  std::vector<int64_t> bins_;
  int64_t items_ = 0;
  int64_t max_us_ = 0;
};

}  // namespace muster::scaling::replay
