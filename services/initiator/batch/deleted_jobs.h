// DeletedJobs: removes the queues of jobs that were deleted. A queue is a file or, on NATS, streams
// and consumers, which would stay for ever.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/job/job_registry.h"
#include "muster/ledger/batch_ledger.h"
#include "muster/queue/queue_store.h"
#include "services/initiator/batch/job_queues.h"

namespace muster::initiator::batch {

// By then every process has noticed that a job was deleted, and nothing reads its queues.
inline constexpr absl::Duration kDeletedFor = absl::Minutes(2);

// Any number of initiators of a mesh may do this at a time. Not thread-safe.
class DeletedJobs {
 public:
  // Nothing is owned. `jobs` null: no job is ever deleted.
  struct Dependencies {
    job::JobRegistry* jobs = nullptr;
    queue::QueueStore* queues = nullptr;
    ledger::BatchLedger* ledger = nullptr;
    JobQueues* job_queues = nullptr;
    base::Clock* clock = nullptr;
    // A batch of the job that is not over, of any other initiator; nullopt: none of them has one.
    // An error: it is not known. Empty: there is no other initiator.
    std::function<absl::StatusOr<std::optional<uint64_t>>(const std::string& job)> find_elsewhere =
        nullptr;
  };

  DeletedJobs(const Dependencies& dependencies, std::string account)
      : deps_(dependencies), account_(std::move(account)) {}

  // Looks once at each job that was deleted kDeletedFor ago. It keeps what somebody may still want:
  // the queues of a job that is there again, or of which a batch is open here or at an initiator
  // that is known, and those of a job with dead letters, which wait for a redrive. While such an
  // initiator does not answer they stay, too. What else a queue holds is left from batches that are
  // over; an open batch of an initiator that is away, and no longer known, puts its items again
  // once there is the job. The error is the first one; it does not keep other jobs from their turn.
  absl::Status Sweep();

 private:
  using Names = absl::flat_hash_set<std::string>;

  absl::StatusOr<Names> QueueNames();
  // `names`: all queues there are.
  absl::Status RemoveQueuesOf(const job::DeletedJob& job, const Names& names);
  absl::StatusOr<bool> HasOpenBatch(const std::string& job);
  absl::StatusOr<bool> HasDeadLetters(const std::vector<queue::QueueId>& queues);

  const Dependencies deps_;
  const std::string account_;
};

// A batch of the job that is not over; nullopt: the ledger has none. Errors are the ledger's.
absl::StatusOr<std::optional<uint64_t>> FindOpenBatch(ledger::BatchLedger& ledger,
                                                      absl::string_view job);

}  // namespace muster::initiator::batch
