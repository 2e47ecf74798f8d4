// JobQueues: makes sure that the queues of jobs are there, for items and for results, and remembers
// for a while which are, so that not each batch asks for queues that have been there for hours.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/job/job.h"
#include "muster/queue/queue_store.h"

namespace muster::initiator::batch {

// Makes those of the job's queues that are missing. One that is there is left as it is.
absl::Status CreateQueues(queue::QueueStore* store, const std::string& account,
                          const job::JobDefinition& job);

// Thread-safe.
class JobQueues {
 public:
  // Nothing is owned.
  JobQueues(queue::QueueStore* store, std::string account, base::Clock* clock)
      : store_(store), account_(std::move(account)), clock_(clock) {}

  // Makes the job's queues where they are missing. The store is asked only for those that were not
  // seen within the last minute.
  absl::Status Ensure(const job::JobDefinition& job);

  // The store says that one of the job's queues is not there: makes sure of all of them anew.
  absl::Status EnsureAnew(const job::JobDefinition& job);

 private:
  bool WasSeen(const queue::QueueId& queue);

  queue::QueueStore* const store_;  // not owned
  const std::string account_;
  base::Clock* const clock_;  // not owned

  base::Mutex mu_;
  // Until when, by the monotonic clock, each is taken to be there.
  absl::flat_hash_map<queue::QueueId, absl::Duration> trusted_until_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::initiator::batch
