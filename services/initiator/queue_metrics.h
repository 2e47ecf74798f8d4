// SPDX-License-Identifier: Apache-2.0

// QueueMetrics: what lies in the queues of the mesh, read from the queue store at each scrape.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/job/job_registry.h"
#include "muster/queue/queue_store.h"
#include "muster/telemetry/registry.h"

namespace muster::initiator {

// A scrape asks for the statistics of each queue, one after the other. When this time is over it
// leaves out the rest: the scraper waits some seconds at most.
inline constexpr absl::Duration kQueueReadTime = absl::Seconds(2);
inline constexpr int kQueuesAtATime = 500;  // of a list

// What a reading needs. Nothing is owned; all of it outlives the metrics.
struct QueueSources {
  queue::QueueStore* queues = nullptr;
  job::JobRegistry* jobs = nullptr;
  std::function<bool()> is_connected;  // to what the stores are on: else nothing is asked
  // 0: not known.
  std::function<double(const std::string& job)> items_per_second;
  std::string account;
  base::Clock* clock = nullptr;
};

// Thread-safe.
class QueueMetrics {
 public:
  // `registry` is not owned; null: nothing is ever read.
  QueueMetrics(QueueSources sources, telemetry::Registry* registry);

 private:
  struct Promise {
    absl::Time updated;  // of the job
    absl::Duration sla;  // infinite: it has none
  };

  absl::Status Read(telemetry::Samples* samples);
  absl::Status ReadQueues(const std::map<std::string, std::string>& jobs, absl::Duration deadline,
                          telemetry::Samples* samples);
  void ReadPromises(const std::vector<job::JobSummary>& jobs, absl::Duration deadline,
                    telemetry::Samples* samples);

  const QueueSources sources_;
  // By job: a definition is read once, and again when it has changed. Only for the reader, of which
  // one call runs at a time.
  std::map<std::string, Promise> promises_;
  std::unique_ptr<telemetry::Reading> reading_;  // last: it uses all of the above
};

}  // namespace muster::initiator
