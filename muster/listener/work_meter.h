// WorkMeter: what the dequeue tasks of a listener do with their time.
#pragma once

#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/listener/service_times.h"

namespace muster::listener {

// Totals since the listener was made.
struct WorkTimes {
  int tasks = 0;           // running now
  int busy_tasks = 0;      // of these, with messages in hand
  absl::Duration running;  // of all tasks together
  absl::Duration busy;     // of that, with messages in hand
  ServiceTimes service;    // of each message, from its beginning to the handler's answer
};

// Thread-safe. A lock and a look at the clock for each call.
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
  // Adds what has passed since the last change to `times`.
  absl::Duration AddLapseLocked(WorkTimes* times) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  base::Clock* const clock_;  // not owned
  mutable base::Mutex mu_;
  absl::Duration changed_at_ ABSL_GUARDED_BY(mu_);
  WorkTimes times_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::listener
