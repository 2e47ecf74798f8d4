// LatencyHistogram: percentiles of millions of latencies in a fixed amount of memory.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
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

// Tally: what became of the items, and what it cost.

struct Tally {
  LatencyHistogram latencies;
  int64_t violations = 0;  // items that took longer than the SLA
  int64_t work_us = 0;     // of tasks
  // Replicas' time: from their start to their end, whether they work or not.
  int64_t replica_us = 0;
  int64_t ready_us = 0;  // without the time that they take to start
};

// What a plot shows of a run, second by second.

struct SeriesPoint {
  int64_t second = 0;   // since the trace's start
  int64_t arrived = 0;  // items, at this second
  int64_t outstanding = 0;
  double replicas = 0;     // ready and starting
  int64_t violations = 0;  // items found late since the last point
};

using SeriesSink = std::function<void(const SeriesPoint&)>;

// Metrics: how a policy fared on a trace.

struct Metrics {
  int64_t items = 0;
  int64_t violations = 0;
  LatencyHistogram latencies;
  double replica_seconds = 0;  // paid: starting replicas cost as ready ones do
  double ready_seconds = 0;
  double work_seconds = 0;  // what replicas that never idle nor start would take
  int64_t actions = 0;      // changes of the number of replicas
  std::string decision_hash;

  double violation_ratio() const;
  double cost_over_work() const;
  // Of the time of ready replicas, what they did not work.
  double idle_share() const;

  // Everything of both; the hash is that of both hashes.
  void Merge(const Metrics& other);
};

}  // namespace muster::scaling::replay
