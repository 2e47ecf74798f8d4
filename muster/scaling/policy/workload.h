// CompletionEstimate: what the replicas have probably done since the queues were last read.
// Statistics can be half a minute old; without this, work that is long done would seem to near its
// deadline.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "muster/scaling/policy/backlog.h"
#include "muster/scaling/policy/policy.h"

namespace muster::scaling::policy {

// Not thread-safe. Bounded: looks back for kEstimateHorizon.
class CompletionEstimate {
 public:
  // From `now` on, until the next call, this much is done while there is work.
  void See(absl::Time now, double items_per_second);

  // Items done from `since` until the last See.
  double DoneSince(absl::Time since) const;

  // Forgets all: time went backwards.
  void Reset() { looks_.clear(); }

 private:
  struct Look {
    absl::Time at;
    double done;  // until `at`, ever
    double items_per_second;
  };

  std::deque<Look> looks_;
};

// RecentArrivals: at what rate work came in the last minute, and how large its batches are.

// Not thread-safe. Bounded.
class RecentArrivals {
 public:
  // `ever`: all items that were known until now.
  void See(absl::Time now, int64_t ever);
  void SeeBatch(int64_t items);

  // Over the last minute, or as long as one has looked.
  double PerSecond() const;

  // The 99th percentile of the last batches; 0: there were none.
  double LargeBatch() const;

  // Time went backwards; rates begin anew.
  void Reset() { looks_.clear(); }

 private:
  struct Look {
    absl::Time at;
    int64_t ever;
  };

  std::deque<Look> looks_;
  std::deque<int64_t> batches_;
};

// ObservedSpeed: what a replica has done per second while work waited, by the queues' own totals.
// An estimate that is too high makes every deadline late, and no margin covers a fifth; the queues
// tell within seconds.

// Not thread-safe.
class ObservedSpeed {
 public:
  void See(absl::Time now, const Fleet& fleet, absl::Span<const QueueReading> readings);

  // Items per second of one replica; 0: too few were done to tell.
  double ItemsPerSecond() const;

  // Time went backwards. What was learned stays.
  void StepBack();

 private:
  struct Reading {
    absl::Time at;
    int64_t waiting = 0;
    int64_t out = 0;
  };

  void Learn(const Reading& from, const Reading& to);

  CompletionEstimate replicas_;  // replica-seconds that were there to work
  std::optional<Reading> last_;
  int tasks_ = 0;
  double items_ = 0;
  double replica_seconds_ = 0;
};

// Workload: all that is known of a target's queued work at an instant.

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
