// ServiceRate: how fast a replica works, learned from heartbeats, for each number of dequeue tasks.
#pragma once

#include <deque>
#include <map>

namespace muster::scaling::policy {

// Not thread-safe. Remembers the last 64 samples of each number of tasks, and 64 such numbers.
class ServiceRate {
 public:
  // A busy replica with `tasks` dequeue tasks did this many items per second. False, and nothing
  // learned, where either number is not above 0 or not finite: an idle replica's speed tells
  // nothing.
  bool See(int tasks, double items_per_second);

  // What a replica with `tasks` can be relied on to do: the 25th percentile, or of fewer than eight
  // samples 85 % of their mean. A number of tasks that was never seen is inferred from those that
  // were: more tasks are at least as fast together, fewer are at least as fast each. 0: nothing is
  // known.
  double LowerBound(int tasks) const;

 private:
  std::map<int, std::deque<double>> samples_;
};

}  // namespace muster::scaling::policy
