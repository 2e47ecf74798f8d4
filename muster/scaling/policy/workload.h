// SPDX-License-Identifier: Apache-2.0

// Workload: the queued work of a target, with estimates of completions, arrivals and speed.
//
// CompletionEstimate: the work that the replicas have probably done since the queues were last
// read. Statistics can be half a minute old; without the estimate, finished work would seem to
// approach its deadline.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "muster/scaling/policy/backlog.h"
#include "muster/scaling/policy/backlog_tracker.h"
#include "muster/scaling/policy/policy.h"

namespace muster::scaling::policy {

// Not thread-safe. Bounded: looks back for kEstimateHorizon.
class CompletionEstimate {
 public:
  // From `now` until the next call, the replicas do this many items per second while there is work.
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

// RecentArrivals: the arrival rate of the last minute, and the sizes of recent batches.

// Not thread-safe. Bounded.
class RecentArrivals {
 public:
  // `ever`: all items that became known until now.
  void See(absl::Time now, int64_t ever);
  // Items that were put at `at`. An initiator announces a batch piece by piece while it puts it:
  // what comes within a second of the first piece is one batch.
  void SeeBatch(absl::Time at, int64_t items);

  // The rate over the last minute, or since the first See if that is less.
  double PerSecond() const;

  // The 99th percentile of the last batches; 0: there were none. A batch whose pieces still come
  // counts only if it is the first one.
  double LargeBatch() const;

  // Call it when time went backwards: rates start anew.
  void Reset() {
    looks_.clear();
    is_coming_ = false;
  }

 private:
  struct Look {
    absl::Time at;
    int64_t ever;
  };

  std::deque<Look> looks_;
  std::deque<int64_t> batches_;
  absl::Time began_;        // of the last one
  bool is_coming_ = false;  // its pieces still come
};

// ObservedSpeed: the items per second of a replica while work waited, from the queues' own totals.
// A speed estimate that is too high makes every deadline late, and no margin covers an error of a
// fifth; the queues show the real speed within seconds.

// Not thread-safe.
class ObservedSpeed {
 public:
  void See(absl::Time now, const Fleet& fleet, absl::Span<const QueueReading> readings);

  // Items per second of one replica; 0: too few items were done to tell.
  double ItemsPerSecond() const;

  // Call it when time went backwards. The learned speed stays.
  void StepBack();

 private:
  struct Reading {
    absl::Time at;
    int64_t waiting = 0;
    int64_t out = 0;
  };

  void Learn(const Reading& from, const Reading& to);

  CompletionEstimate replicas_;  // replica-seconds available for work
  std::optional<Reading> last_;
  int tasks_ = 0;
  double items_ = 0;
  double replica_seconds_ = 0;
};

// Workload: everything known about a target's queued work at an instant.

// Not thread-safe.
class Workload {
 public:
  // Statistics older than `stale_after` count as missing.
  Workload(absl::Duration resolution, absl::Duration stale_after)
      : tracker_(resolution), stale_after_(stale_after) {}

  void Announce(const Announcement& announcement);

  // Takes in a sane observation (see Sane). The target's busy replicas together do
  // `items_per_second`.
  void See(const Observation& observation, double items_per_second);

  // Time steps back to `now`. Queued work stays, but none counts as put later than `now`.
  void StepBack(absl::Time now);

  Backlog backlog() const {
    return {&tracker_.cohorts(), static_cast<double>(tracker_.items()), done_};
  }
  bool empty() const { return static_cast<double>(tracker_.items()) <= done_; }

  // The number of looks in a row without queue statistics.
  int misses() const { return misses_; }

  // The real speed of a replica according to the queues; 0: too few items were done to tell.
  double ObservedItemsPerSecond() const { return speed_.ItemsPerSecond(); }

  // All items that ever became known.
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
