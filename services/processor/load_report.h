// LoadReport: what a processor's heartbeats say of its jobs.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "muster/listener/load_meter.h"
#include "muster/v1/heartbeat.pb.h"
#include "services/processor/job_listeners.h"

namespace muster::processor {

// Not thread-safe.
class LoadReport {
 public:
  // `listeners` is not owned and outlives the report.
  explicit LoadReport(JobListeners* listeners) : listeners_(listeners) {}

  // Adds the handlers that the instance has, the load of each of its jobs in `window`, which is the
  // time since the last call, and what keeps it from working for one.
  void AddTo(absl::Duration window, v1::Heartbeat* heartbeat);

 private:
  JobListeners* const listeners_;  // not owned
  struct Metered {
    std::weak_ptr<listener::QueueListener> listener;  // whose totals these are
    listener::LoadMeter meter;
  };
  std::map<std::string, Metered> meters_;  // by job
};

}  // namespace muster::processor
