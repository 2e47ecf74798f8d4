// SPDX-License-Identifier: Apache-2.0

// The counters and times of a listener: storage transactions by verb (each is billed),
// wake-ups by cause, outcomes of messages, and how its tasks spend their time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"

namespace muster::listener {

// A snapshot; all figures are totals since the listener was made.
struct ListenerCounters {
  // Storage transactions: calls of the store, retries included.
  int64_t receives_useful = 0;  // Receive that gave at least one message
  int64_t receives_empty =
      0;  // Receive that gave none, or an open receive whose time was up: wasted
  int64_t receives_failed = 0;
  int64_t begins = 0;          // BeginAttempt
  int64_t lease_renewals = 0;  // Update by the LeaseRenewer
  int64_t give_backs = 0;      // Update by the settler
  int64_t output_puts = 0;     // Put into the output queue
  int64_t deletes = 0;
  int64_t dead_letter_calls = 0;
  int64_t depth_checks_useful = 0;  // Stats, per partition, of a look that found work
  int64_t depth_checks_empty = 0;   // … and of one that found none: wasted

  // Wake-ups of an idle listener (no dequeue task) that found work, by what caused them.
  int64_t wakeups_push = 0;       // a trigger, or a message that came to an open receive
  int64_t wakeups_scheduled = 0;  // a delay that this listener had set itself ran out
  int64_t wakeups_safety = 0;     // the safety check: a trigger was lost, or a lease expired
  int64_t triggers_heard = 0;     // for queues of this listener, whether or not they woke a task
  int64_t triggers_sent = 0;

  // Messages.
  int64_t messages_received = 0;
  int64_t redeliveries = 0;  // of these, those with a dequeue count above 1
  int64_t interrupted = 0;   // of these, suspects: an earlier holder died
  int64_t attempts = 0;      // handler starts that were charged
  int64_t messages_done = 0;
  int64_t messages_retried = 0;
  int64_t messages_deferred = 0;
  int64_t messages_released = 0;
  int64_t messages_withheld = 0;  // given back because their key is held
  int64_t dead_letters = 0;
  int64_t stale_settles = 0;  // settled too late: the lease was lost
  // Each counted once, by the LeaseTable: the store said so, or the lease ran out by the local
  // clock before it was renewed or settled.
  int64_t leases_lost = 0;
  int64_t abandoned = 0;  // could not be settled; its lease is left to expire

  int64_t storage_transactions() const {
    return receives_useful + receives_empty + receives_failed + begins + lease_renewals +
           give_backs + output_puts + deletes + dead_letter_calls + depth_checks_useful +
           depth_checks_empty;
  }
};

// Thread-safe.
class CounterSet {
 public:
  void Add(int64_t ListenerCounters::*counter, int64_t by = 1) {
    base::MutexLock lock(&mu_);
    counters_.*counter += by;
  }

  ListenerCounters Snapshot() const {
    base::MutexLock lock(&mu_);
    return counters_;
  }

 private:
  mutable base::Mutex mu_;
  ListenerCounters counters_ ABSL_GUARDED_BY(mu_);
};

// ServiceTimes: how long handlers took, as a histogram of fixed size.
//
// Each octave, from one power of two of microseconds to the next, has kPerOctave buckets, so a
// percentile is at most 9% too large. The range is 1 µs to some days; times outside count as the
// nearest bucket.

// Not thread-safe.
class ServiceTimes {
 public:
  void Add(absl::Duration time);

  int64_t count() const { return count_; }
  // Zero when there are none.
  absl::Duration Mean() const;
  // The time that a `share` of all times, 0 to 1, does not exceed.
  absl::Duration Percentile(double share) const;

  // Returns the times added since `earlier`, an older copy of this object.
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

// WorkMeter: how the dequeue tasks of a listener spend their time.

// Totals since the listener was made.
struct WorkTimes {
  int tasks = 0;           // running now
  int busy_tasks = 0;      // of these, with messages in hand
  absl::Duration running;  // of all tasks together
  absl::Duration busy;     // of that, with messages in hand
  ServiceTimes service;    // of each message, from its beginning to the handler's answer
};

// Thread-safe. Each call takes a lock and reads the clock.
class WorkMeter {
 public:
  // `clock` is not owned.
  explicit WorkMeter(base::Clock* clock) : clock_(clock) {}

  void TaskBegan() { Change(+1, 0); }
  void TaskEnded() { Change(-1, 0); }
  void WorkBegan() { Change(0, +1); }
  void WorkEnded() { Change(0, -1); }
  void Served(absl::Duration time);

  WorkTimes Read() const;

 private:
  void Change(int tasks, int busy_tasks);
  // Adds the time since the last change to `times`.
  absl::Duration AddLapseLocked(WorkTimes* times) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  base::Clock* const clock_;  // not owned
  mutable base::Mutex mu_;
  absl::Duration changed_at_ ABSL_GUARDED_BY(mu_);
  WorkTimes times_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::listener
