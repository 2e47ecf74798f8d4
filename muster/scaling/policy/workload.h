// Workload: all that is known of a target's queued work at an instant.
#pragma once

#include "absl/time/time.h"
#include "muster/scaling/policy/backlog.h"
#include "muster/scaling/policy/cohort_ledger.h"
#include "muster/scaling/policy/observation.h"
#include "muster/scaling/policy/observed_speed.h"
#include "muster/scaling/policy/recent_arrivals.h"
#include "muster/scaling/policy/reckoning.h"

namespace muster::scaling::policy {

// Not thread-safe.
class Workload {
 public:
  // Statistics older than `stale_after` are as good as none.
  Workload(absl::Duration resolution, absl::Duration stale_after)
      : tracker_(resolution), stale_after_(stale_after) {}

  void Announce(const Announcement& announcement);

  // Takes in a sane observation, of a target whose busy replicas do `items_per_second` together.
  void See(const Observation& observation, double items_per_second);

  // Time steps back to `now`. What is queued stays, but nothing was put later than that.
  void StepBack(absl::Time now);

  Backlog backlog() const {
    return {&tracker_.cohorts(), static_cast<double>(tracker_.items()), done_};
  }
  bool empty() const { return static_cast<double>(tracker_.items()) <= done_; }

  // Looks in a row that found no statistics of the queues.
  int misses() const { return misses_; }

  // What replicas really did, as far as the queues tell; 0: too little.
  double ObservedItemsPerSecond() const { return speed_.ItemsPerSecond(); }

  // All items that ever came to be known.
  int64_t ever() const { return tracker_.ever(); }

  const RecentArrivals& arrivals() const { return arrivals_; }

 private:
  BacklogTracker tracker_;
  const absl::Duration stale_after_;
  CompletionEstimate completed_;
  RecentArrivals arrivals_;
  ObservedSpeed speed_;
  double done_ = 0;
  int misses_ = 0;
};

}  // namespace muster::scaling::policy
