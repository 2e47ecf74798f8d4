// LoadReport: what a processor's heartbeats say of its jobs.
#pragma once

#include <map>
#include <string>

#include "absl/time/time.h"
#include "muster/job_load/load_meter.h"
#include "muster/v1/heartbeat.pb.h"
#include "services/processor/job_listeners.h"

namespace muster::processor {

// Not thread-safe.
class LoadReport {
 public:
  // `listeners` is not owned and outlives the report.
  explicit LoadReport(JobListeners* listeners) : listeners_(listeners) {}

  // Adds the handlers that the instance has, and the load of each of its jobs in `window`, which is
  // the time since the last call.
  void AddTo(absl::Duration window, v1::Heartbeat* heartbeat);

 private:
  JobListeners* const listeners_;                      // not owned
  std::map<std::string, job_load::LoadMeter> meters_;  // by job
};

}  // namespace muster::processor
