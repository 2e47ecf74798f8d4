// SPDX-License-Identifier: Apache-2.0

// JobListeners: the interface through which WorkerService and LoadReport reach a processor's
// listeners.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/listener/listener.h"
#include "muster/listener/load_meter.h"
#include "muster/v1/heartbeat.pb.h"

namespace muster::processor {

struct JobListener {
  std::string job;
  // Shared: the job may be replaced while another thread waits for the listener's end.
  std::shared_ptr<listener::QueueListener> listener;
  std::string handler_version = {};  // of the handler that it runs
  uint64_t transactions = 0;         // that it has processed so far
  absl::Duration starting = {};      // in which its tasks have made their handlers, so far
};

// Stops all listeners at the same time, each as QueueListener::Stop does. DeadlineExceeded names a
// job whose listener took longer than `grace`.
absl::Status StopAll(const std::vector<JobListener>& served, absl::Duration grace);

// Thread-safe.
class JobListeners {
 public:
  virtual ~JobListeners() = default;

  // One listener for each job, ordered by job name, including listeners that have stopped.
  virtual std::vector<JobListener> Listeners() = 0;

  // What keeps the processor from working, by job; also for jobs that have no listener for that
  // reason. Omits jobs whose handler only other processors have.
  virtual std::map<std::string, std::string> OpenTroubles() = 0;

  // The release for which all listeners wait before they take the first message; empty: they take
  // messages.
  virtual std::string ParkedFor() { return ""; }

  // Whether the next pause of `job` is for lack of work, which is no trouble.
  virtual void NotePause(absl::string_view job, bool for_lack_of_work) {}
  virtual bool LacksWork(absl::string_view job) { return false; }

  // From now on no new listener replaces that of `job`. Empty `job`: no listener is replaced, and
  // no new job gets one. Stops nothing.
  virtual void Retire(absl::string_view job) = 0;
};

// LoadReport: writes the state of a processor's jobs into its heartbeats.

// Not thread-safe.
class LoadReport {
 public:
  // Neither is owned; both outlive the report.
  explicit LoadReport(JobListeners* listeners, base::Clock* clock = base::RealClock())
      : listeners_(listeners), clock_(clock) {}

  // Adds the handlers of the instance, the load of each of its jobs, and what keeps it from working
  // for a job. `window` is the time since the last call, which the load covers.
  void AddTo(absl::Duration window, v1::Heartbeat* heartbeat);

 private:
  struct Metered {
    std::weak_ptr<listener::QueueListener> listener;  // the listener that `meter` measures
    listener::LoadMeter meter;
    std::optional<absl::Time> paused_since = std::nullopt;  // as this report noticed it
  };

  // A paused listener works for no batch, and only an operator can change that.
  void NotePause(const listener::QueueListener& listener, Metered* metered,
                 v1::JobLoad* load) const;

  JobListeners* const listeners_;          // not owned
  base::Clock* const clock_;               // not owned
  std::map<std::string, Metered> meters_;  // by job
};

}  // namespace muster::processor
