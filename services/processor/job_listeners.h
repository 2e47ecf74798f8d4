// JobListeners: the seam between a processor's listeners and those who look after them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/listener/listener.h"
#include "muster/listener/load_meter.h"
#include "muster/v1/heartbeat.pb.h"

namespace muster::processor {

struct JobListener {
  std::string job;
  // Shared: its job may be replaced while somebody waits for its end.
  std::shared_ptr<listener::QueueListener> listener;
  std::string handler_version = {};  // of what it runs
  uint64_t transactions = 0;         // that it has processed so far
};

// Stops all of them side by side, as QueueListener::Stop does. DeadlineExceeded naming one that
// took longer than `grace`.
absl::Status StopAll(const std::vector<JobListener>& served, absl::Duration grace);

// Thread-safe.
class JobListeners {
 public:
  virtual ~JobListeners() = default;

  // One for each job, in order of job; those that have stopped included.
  virtual std::vector<JobListener> Listeners() = 0;

  // What keeps it from working, by job; also for jobs that have no listener because of it. Those
  // that others are there for are not among them.
  virtual std::map<std::string, std::string> OpenIssues() = 0;

  // From now on no other listener takes the place of this job's. Empty: of none, and no new job
  // gets one. Stops nothing.
  virtual void Retire(absl::string_view job) = 0;
};

// LoadReport: what a processor's heartbeats say of its jobs.

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
