// SPDX-License-Identifier: Apache-2.0

// JobQueues: creates the missing queues of jobs, for items and for results. It remembers for a
// while which queues exist, and as what, so that not every batch asks the store for them.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/job/job.h"
#include "muster/queue/queue_store.h"
#include "services/initiator/batch/queue_scan.h"

namespace muster::initiator::batch {

// Creates the missing queues of the job. A queue that exists stays as it is.
absl::Status CreateQueues(queue::QueueStore* store, const std::string& account,
                          const job::JobDefinition& job);

// Thread-safe.
class JobQueues {
 public:
  // Nothing is owned.
  JobQueues(queue::QueueStore* store, std::string account, base::Clock* clock)
      : store_(store), account_(std::move(account)), clock_(clock) {}

  // Creates the missing queues of the job. Asks the store only for queues that it has not seen
  // within the last minute.
  absl::Status Ensure(const job::JobDefinition& job) ABSL_LOCKS_EXCLUDED(mu_);

  // Forgets what it knows of the job's queues and creates the missing ones: for a caller to which
  // the store reported a missing queue.
  absl::Status EnsureAnew(const job::JobDefinition& job) ABSL_LOCKS_EXCLUDED(mu_);

  // Forgets what it knows of the job's queues, because they were removed.
  void Forget(const std::string& job) ABSL_LOCKS_EXCLUDED(mu_);

  // The incarnation that the queue had within the last minute (QueueExtent).
  absl::StatusOr<std::string> LateIncarnation(const queue::QueueId& queue) ABSL_LOCKS_EXCLUDED(mu_);

  // The scan of the job's queues. Shared, because it ends with the last engine that has it.
  std::shared_ptr<QueueScan> ScanOf(const job::JobDefinition& job) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Known {
    std::string incarnation;
    absl::Duration until;
  };

  bool WasSeen(const queue::QueueId& queue) ABSL_LOCKS_EXCLUDED(mu_);

  queue::QueueStore* const store_;  // not owned
  const std::string account_;
  base::Clock* const clock_;  // not owned

  base::Mutex mu_;
  // Until when, by the monotonic clock, each queue is assumed to exist.
  absl::flat_hash_map<queue::QueueId, absl::Duration> trusted_until_ ABSL_GUARDED_BY(mu_);
  absl::flat_hash_map<queue::QueueId, Known> incarnations_ ABSL_GUARDED_BY(mu_);
  // By job, and the number of its partitions, which a later revision may change.
  std::map<std::pair<std::string, int>, std::weak_ptr<QueueScan>> scans_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::initiator::batch
