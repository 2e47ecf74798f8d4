// SPDX-License-Identifier: Apache-2.0

// ServiceRate: the speed of a replica for each number of dequeue tasks, learned from heartbeats.
// ColdStart: the time that a replica takes to start.
#pragma once

#include <deque>
#include <map>

#include "absl/time/time.h"

namespace muster::scaling::policy {

// Not thread-safe. Remembers the last 64 samples of each number of tasks, and 64 such numbers.
class ServiceRate {
 public:
  // Learns from a busy replica with `tasks` dequeue tasks that finished this many items per second.
  // Returns false and learns nothing if either number is not above 0 or not finite: an idle
  // replica's speed tells nothing.
  bool See(int tasks, double items_per_second);

  // A cautious estimate of the items per second of a replica with `tasks`: the 25th percentile of
  // the samples, or 85 % of their mean if there are fewer than eight. A number of tasks without
  // samples is inferred from the others: more tasks are at least as fast together, fewer tasks are
  // at least as fast each. 0: nothing is known.
  double LowerBound(int tasks) const;

 private:
  std::map<int, std::deque<double>> samples_;
};

// ColdStart: the time from a scaling action to a new replica's first dequeue.

// A pool whose standby does all of its work starts nothing that would be measured: without an age,
// one slow start, which pulled an image perhaps, would keep the standby for ever.
inline constexpr absl::Duration kStartLifetime = absl::Hours(7 * 24);

// Not thread-safe. Remembers the last hundred starts.
class ColdStart {
 public:
  // `prior` is the least answer until five starts were measured.
  explicit ColdStart(absl::Duration prior) : prior_(prior) {}

  // Learns a start that was over at `at`. Returns false and learns nothing if the time is negative
  // or longer than a day.
  bool See(absl::Duration measured, absl::Time at);

  // Forgets starts that were over longer than kStartLifetime before `now`.
  void ForgetOld(absl::Time now);

  // The 95th percentile; with fewer than five starts the longest of them and the prior.
  absl::Duration P95() const;

 private:
  const absl::Duration prior_;
  struct Start {
    absl::Duration took;
    absl::Time at;
  };
  std::deque<Start> starts_;
};

}  // namespace muster::scaling::policy
