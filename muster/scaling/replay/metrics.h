// SPDX-License-Identifier: Apache-2.0

// The results of a replay.
//
// LatencyHistogram: percentiles of millions of latencies in a fixed amount of memory.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace muster::scaling::replay {

// A bin is as wide as the larger of a millisecond and a thousandth of its latency, so a percentile
// is too high by at most 1 ms or 0.1 %; the maximum is exact.
class LatencyHistogram {
 public:
  LatencyHistogram();

  // `latency_us` is at least 0.
  void Add(int64_t latency_us, int64_t items);
  // Adds `items` with latencies spread evenly from `first_us` to `last_us`, in either order. More
  // than kPortions items are added as kPortions equal portions.
  void AddRange(int64_t first_us, int64_t last_us, int64_t items);
  void Merge(const LatencyHistogram& other);

  int64_t items() const { return items_; }
  int64_t max_us() const { return max_us_; }
  // The percentile for `share` (0 to 1): the upper end of the bin that holds the item at `share` of
  // all items, rounded up, in order of latency; at most max_us(). 0 without items.
  int64_t Percentile(double share) const;

  static constexpr int64_t kPortions = 16;

 private:
  std::vector<int64_t> bins_;
  int64_t items_ = 0;
  int64_t max_us_ = 0;
};

// Tally: the latencies of the items, and the cost of serving them.

struct Tally {
  LatencyHistogram latencies;
  int64_t violations = 0;  // items that took longer than the SLA
  int64_t work_us = 0;     // of tasks
  // The time of replicas from start to end, at work or not.
  int64_t replica_us = 0;
  int64_t ready_us = 0;  // without the time that they take to start
};

// One second of a run, for a plot.

struct SeriesPoint {
  int64_t second = 0;   // since the trace's start
  int64_t arrived = 0;  // items, at this second
  int64_t outstanding = 0;
  double replicas = 0;     // ready and starting
  int64_t violations = 0;  // items found late since the last point
};

using SeriesSink = std::function<void(const SeriesPoint&)>;

// Metrics: the result of a policy on a trace.

struct Metrics {
  int64_t items = 0;
  int64_t violations = 0;
  LatencyHistogram latencies;
  double replica_seconds = 0;  // the cost: starting replicas cost as much as ready ones
  double ready_seconds = 0;
  double work_seconds = 0;  // the time that replicas without idle and start times would take
  int64_t actions = 0;      // changes of the number of replicas
  std::string decision_hash;

  double violation_ratio() const;
  double cost_over_work() const;
  // The share of the ready replicas' time without work.
  double idle_share() const;

  // Adds the other result; the new hash is the hash of both hashes.
  void Merge(const Metrics& other);
};

}  // namespace muster::scaling::replay
