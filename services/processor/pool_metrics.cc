#include "services/processor/pool_metrics.h"

#include <algorithm>

#include "muster/item/queue_names.h"
#include "muster/telemetry/catalogue.h"

namespace muster::processor {

ItemMetrics::ItemMetrics(telemetry::Registry* registry, absl::string_view job) {
  const std::string queue = item::LogicalInput(job);
  const telemetry::Counters<2> rejected(registry, telemetry::kRejected);
  rejected_format = rejected.With({queue, "format"});
  rejected_oversized = rejected.With({queue, "oversized"});
  rejected_handler = rejected.With({queue, "handler"});
}

PoolMetrics::PoolMetrics(JobListeners* listeners, telemetry::Registry* registry)
    : listeners_(listeners),
      rejected_(registry, telemetry::kRejected),
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
  std::erase_if(seen_, [](const auto& entry) { return entry.second.listener.expired(); });
  return absl::OkStatus();
}

void PoolMetrics::NoteEnded(const JobListener& served) {
  const listener::ListenerLoad load = served.listener->Load();
  base::MutexLock lock(&mu_);
  AddLocked(served, load.times);
}

void PoolMetrics::AddLocked(const JobListener& served, const listener::WorkTimes& times) {
  Seen& seen = seen_[served.listener.get()];
  if (seen.listener.lock() != served.listener) seen = Seen{served.listener, {}, {}, {}, {}};
  const listener::ListenerCounters now = served.listener->counters();
  const std::string queue = item::LogicalInput(served.job);
  const auto add = [&](const char* kind, int64_t listener::ListenerCounters::*counter) {
    wakeups_.With({queue, kind}).Add(static_cast<double>(now.*counter - seen.counters.*counter));
  };
  add("push", &listener::ListenerCounters::wakeups_push);
  add("scheduled", &listener::ListenerCounters::wakeups_scheduled);
  add("safety", &listener::ListenerCounters::wakeups_safety);
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
