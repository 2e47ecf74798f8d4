// SPDX-License-Identifier: Apache-2.0

// PoolMetrics: how the dequeue tasks of each job's pool spend their time, and what wakes them.
// ItemMetrics: what the workers of one job record while they work. HandlerTimes: how long the calls
// of its handler take.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/base/mutex.h"
#include "muster/handler/handler.h"
#include "muster/handler/restarts.h"
#include "muster/listener/listener.h"
#include "muster/telemetry/registry.h"
#include "services/processor/job_listeners.h"

namespace muster::processor {

// Copyable and thread-safe.
struct ItemMetrics {
  ItemMetrics() = default;
  // `registry` is not owned; null: nothing is recorded.
  ItemMetrics(telemetry::Registry* registry, absl::string_view job);

  telemetry::Counter rejected_format;     // transactions that cannot be read
  telemetry::Counter rejected_oversized;  // that are too large
  telemetry::Counter rejected_handler;
  telemetry::Histograms<2> handler_calls;
  telemetry::Histogram processed;  // attempts that ended without an error
  telemetry::Histograms<4> processes;
  std::string queue;  // the logical queue of the job

  // Whether attempts are timed: else the caller need not read a clock.
  bool times_attempts() const { return processed.records(); }
  // An attempt at an item has ended, with error.type `error`; empty: without.
  void ObserveAttempt(absl::string_view error, absl::Duration time) const;
};

// Keeps the handles of one worker, which so shares no look-up with others. Not thread-safe.
class HandlerTimes {
 public:
  // `metrics` is not owned and outlives it.
  explicit HandlerTimes(const ItemMetrics* metrics);

  // Whether calls are measured: else the caller need not read a clock.
  bool records() const { return calls_.front().records(); }
  // A call has ended so.
  void Observe(handler::Outcome::Kind kind, absl::Duration time);

 private:
  const ItemMetrics* const metrics_;  // not owned
  // Each made when it is used first, but for that of kOk.
  std::array<telemetry::Histogram, 6> calls_;
};

// Counts restarts of the job's handlers from now on. `registry` outlives the handlers.
void CountRestarts(telemetry::Registry* registry, absl::string_view job,
                   handler::Restarts* restarts);

// Listeners count; this adds what they have counted since the last time, at each scrape and when a
// listener ends, so that nothing is lost when a job changes.
//
// Thread-safe.
class PoolMetrics {
 public:
  // Neither is owned; both outlive it. `registry` may be null.
  PoolMetrics(JobListeners* listeners, telemetry::Registry* registry);

  // The listener has ended and is not among the listeners any more.
  void NoteEnded(const JobListener& served) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Seen {
    std::weak_ptr<listener::QueueListener> listener;
    listener::ListenerCounters counters;
    absl::Duration running;
    absl::Duration busy;
    absl::Duration starting;
  };

  absl::Status Read(telemetry::Samples* samples) ABSL_LOCKS_EXCLUDED(mu_);
  void AddLocked(const JobListener& served, const listener::WorkTimes& times)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Forgets listeners that are gone.
  void ForgetLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  JobListeners* const listeners_;  // not owned
  // Of ItemMetrics and CountRestarts: they are there before the first job is.
  const telemetry::Counters<2> rejected_;
  const telemetry::Histograms<2> handler_calls_;
  const telemetry::Histograms<4> processes_;
  const telemetry::Counters<2> restarts_;
  const telemetry::Counters<1> leases_lost_;
  const telemetry::Counters<1> suspects_;
  const telemetry::Counters<2> wakeups_;
  const telemetry::Counters<2> time_;
  base::Mutex mu_;
  std::map<const listener::QueueListener*, Seen> seen_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<telemetry::Reading> reading_;  // last: it uses all of the above
};

}  // namespace muster::processor
