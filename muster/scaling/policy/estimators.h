// ServiceRate: how fast a replica works, learned from heartbeats, for each number of dequeue tasks.
#pragma once

#include <deque>
#include <map>

#include "absl/time/time.h"

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

// ColdStart: how long it takes from a scaling action to a new replica's first dequeue.

// Not thread-safe. Remembers the last hundred starts.
class ColdStart {
 public:
  // `prior` is believed until five starts were measured.
  explicit ColdStart(absl::Duration prior) : prior_(prior) {}

  // False, and nothing learned, where the time is negative or longer than a day.
  bool See(absl::Duration measured);

  // The 95th percentile; of fewer than five starts the longest, and no less than the prior.
  absl::Duration P95() const;

 private:
  const absl::Duration prior_;
  std::deque<absl::Duration> measured_;
};

}  // namespace muster::scaling::policy
