// TaskEnvironment: what all dequeue tasks of a listener share.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <stop_token>

#include "absl/status/status.h"
#include "muster/base/backoff.h"
#include "muster/base/clock.h"
#include "muster/base/retry_policy.h"
#include "muster/listener/claim_sizer.h"
#include "muster/listener/counters.h"
#include "muster/listener/lease_table.h"
#include "muster/listener/listener.h"
#include "muster/listener/settler.h"
#include "muster/listener/supervisor.h"
#include "muster/listener/task_roster.h"
#include "muster/listener/verdict.h"
#include "muster/listener/visibility_tuner.h"
#include "muster/listener/work_meter.h"
#include "muster/queue/queue_store.h"

namespace muster::listener {

// None of the pointers is owned; all outlive the tasks. Each is thread-safe.
struct TaskEnvironment {
  const ListenerOptions* options;
  VerdictRules rules;
  queue::QueueStore* store;
  base::Clock* clock;
  base::RetryPolicy* retry;
  VisibilityTuner* visibility;
  LeaseTable* leases;
  Settler* settler;
  TaskRoster* roster;
  ClaimSizer* sizer;
  CounterSet* counters;
  WorkMeter* meter;
  Supervisor* supervisor;
  std::stop_token stopping;

  std::function<void(const absl::Status&)> on_error;
  // The decision for a task that found the queue empty `idle_count` times; the interval is for
  // tasks that stay.
  std::function<IdleDecision(int idle_count)> queue_empty;  // empty: the default
  std::function<absl::StatusOr<std::unique_ptr<Subscriber>>()> subscribers;

  // What may change while running.
  std::atomic<int>* dequeue_batch_size;
  std::function<base::IdleBackoffOptions()> idle_intervals;
};

}  // namespace muster::listener
