// SPDX-License-Identifier: Apache-2.0
#include "services/processor/pool_metrics.h"

#include <algorithm>

#include "muster/item/queue_names.h"
#include "muster/telemetry/catalogue.h"

namespace muster::processor {
namespace {

// Places of the outcomes in HandlerTimes, and their names. ProcessGuarded answers no kUnset.
struct KnownOutcome {
  size_t place = 0;
  absl::string_view name;
};

KnownOutcome Known(handler::Outcome::Kind kind) {
  switch (kind) {
    case handler::Outcome::Kind::kOk:
      return {0, "ok"};
    case handler::Outcome::Kind::kUnset:
    case handler::Outcome::Kind::kRetry:
      return {1, "retry"};
    case handler::Outcome::Kind::kDefer:
      return {2, "defer"};
    case handler::Outcome::Kind::kDead:
      return {3, "dead"};
    case handler::Outcome::Kind::kUnfit:
      return {4, "unfit"};
    case handler::Outcome::Kind::kRelease:
      break;
  }
  return {5, "release"};
}

}  // namespace

ItemMetrics::ItemMetrics(telemetry::Registry* registry, absl::string_view job)
    : handler_calls(registry, telemetry::kHandlerCall),
      processes(registry, telemetry::kMessagingProcess),
      queue(item::LogicalInput(job)) {
  const telemetry::Counters<2> rejected(registry, telemetry::kRejected);
  rejected_format = rejected.With({queue, "format"});
  rejected_oversized = rejected.With({queue, "oversized"});
  rejected_handler = rejected.With({queue, "handler"});
  processed = processes.With({queue, "process", telemetry::kMessagingSystem, ""});
}

void ItemMetrics::ObserveAttempt(absl::string_view error, absl::Duration time) const {
  if (error.empty()) return processed.Observe(time);
  processes.With({queue, "process", telemetry::kMessagingSystem, error}).Observe(time);
}

HandlerTimes::HandlerTimes(const ItemMetrics* metrics) : metrics_(metrics) {
  calls_.front() = metrics->handler_calls.With({metrics->queue, "ok"});
}

void HandlerTimes::Observe(handler::Outcome::Kind kind, absl::Duration time) {
  const KnownOutcome known = Known(kind);
  telemetry::Histogram& calls = calls_.at(known.place);
  if (!calls.records()) calls = metrics_->handler_calls.With({metrics_->queue, known.name});
  calls.Observe(time);
}

void CountRestarts(telemetry::Registry* registry, absl::string_view job,
                   handler::Restarts* restarts) {
  const telemetry::Counters<2> counters(registry, telemetry::kHandlerRestarts);
  restarts->Listen([counters, queue = item::LogicalInput(job)](handler::RestartReason reason) {
    counters.With({queue, handler::RestartReasonName(reason)}).Add();
  });
}

PoolMetrics::PoolMetrics(JobListeners* listeners, telemetry::Registry* registry)
    : listeners_(listeners),
      rejected_(registry, telemetry::kRejected),
      handler_calls_(registry, telemetry::kHandlerCall),
      processes_(registry, telemetry::kMessagingProcess),
      restarts_(registry, telemetry::kHandlerRestarts),
      leases_lost_(registry, telemetry::kLeasesLost),
      suspects_(registry, telemetry::kSuspects),
      wakeups_(registry, telemetry::kWakeups),
      time_(registry, telemetry::kWorkerTime),
      reading_(
          telemetry::ReadAtScrape(registry, "pools", {telemetry::kDequeueTasks.entry()},
                                  [this](telemetry::Samples* samples) { return Read(samples); })) {}

absl::Status PoolMetrics::Read(telemetry::Samples* samples) {
  for (const JobListener& served : listeners_->Listeners()) {
    const listener::ListenerLoad load = served.listener->Load();
    const int busy = load.times.busy_tasks;
    samples->Set(telemetry::kDequeueTasks, {served.job, "busy"}, busy);
    samples->Set(telemetry::kDequeueTasks, {served.job, "idle"}, load.times.tasks - busy);
    samples->Set(telemetry::kDequeueTasks, {served.job, "max"}, load.max_dequeue_tasks);
    base::MutexLock lock(&mu_);
    AddLocked(served, load.times);
  }
  base::MutexLock lock(&mu_);
  ForgetLocked();
  return absl::OkStatus();
}

void PoolMetrics::NoteEnded(const JobListener& served) {
  const listener::ListenerLoad load = served.listener->Load();
  base::MutexLock lock(&mu_);
  ForgetLocked();  // where nothing is measured, nothing scrapes
  AddLocked(served, load.times);
}

void PoolMetrics::ForgetLocked() {
  std::erase_if(seen_, [](const auto& entry) { return entry.second.listener.expired(); });
}

void PoolMetrics::AddLocked(const JobListener& served, const listener::WorkTimes& times) {
  Seen& seen = seen_[served.listener.get()];
  if (seen.listener.lock() != served.listener) seen = Seen{served.listener, {}, {}, {}, {}};
  const listener::ListenerCounters now = served.listener->counters();
  const std::string queue = item::LogicalInput(served.job);
  const auto add = [&](telemetry::Counter to, int64_t listener::ListenerCounters::*counter) {
    to.Add(static_cast<double>(now.*counter - seen.counters.*counter));
  };
  add(wakeups_.With({queue, "push"}), &listener::ListenerCounters::wakeups_push);
  add(wakeups_.With({queue, "scheduled"}), &listener::ListenerCounters::wakeups_scheduled);
  add(wakeups_.With({queue, "safety"}), &listener::ListenerCounters::wakeups_safety);
  add(leases_lost_.With({queue}), &listener::ListenerCounters::leases_lost);
  add(suspects_.With({queue}), &listener::ListenerCounters::interrupted);
  const absl::Duration busy = times.busy - seen.busy;
  time_.With({served.job, "busy"}).AddSeconds(busy);
  // A task that makes its handler runs, and is not busy.
  const absl::Duration starting = served.starting - seen.starting;
  time_.With({served.job, "starting"}).AddSeconds(starting);
  const absl::Duration idle = times.running - seen.running - busy - starting;
  time_.With({served.job, "idle"}).AddSeconds(std::max(absl::ZeroDuration(), idle));
  seen.counters = now;
  seen.running = times.running;
  seen.busy = times.busy;
  seen.starting = served.starting;
}

}  // namespace muster::processor
