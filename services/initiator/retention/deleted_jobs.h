// SPDX-License-Identifier: Apache-2.0

// DeletedJobs: removes what jobs have left that were deleted, once no batch of them is open:
//
//   queues     files or, on NATS, streams and consumers; with their held keys
//   groups     the records of processors that shared the input of a job with order_by
//   history    the definitions of the job, by revision and text (job_registry.h)
//
// And of jobs that were replaced the definitions of which no open batch is, when the job's queues
// are empty.
//
// A batch that is over needs none of these: its ledger has the text of its definition. Whoever is
// not asked may have an open one, though: an initiator that is away. It puts back what its batch
// needs when it is there again (JobRegistry::Restore), and the job is removed once more after it.
// An initiator of an older muster does not answer, so nothing is removed while one is known.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
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
#include "muster/partition/partition_admin.h"
#include "muster/queue/queue_store.h"
#include "muster/sync/optimistic_sync_store.h"

namespace muster::initiator::retention {

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
    // Called when the queues of the job are gone.
    std::function<void(const std::string& job)> forget_queues;
    base::Clock* clock = nullptr;
    // Where groups and held keys are; null: there are none.
    sync::OptimisticSyncStore* records = nullptr;
    // A batch of the job that is not over, of any other initiator; nullopt: none of them has one.
    // Those of `but_of_revision` do not count, if it is not empty. An error: it is not known.
    // Empty: there is no other initiator.
    std::function<absl::StatusOr<std::optional<uint64_t>>(const std::string& job,
                                                          const std::string& but_of_revision)>
        find_elsewhere = nullptr;
  };

  DeletedJobs(const Dependencies& dependencies, std::string account)
      : deps_(dependencies), account_(std::move(account)) {}

  // Looks once at each job that was deleted kDeletedFor ago. It keeps what somebody may still want:
  // the queues of a job that is there again, or of which a batch is open here or at an initiator
  // that is known, and those of a job with dead letters, which wait for a redrive. While such an
  // initiator does not answer they stay, too. What else a queue holds is left from batches that are
  // over; an open batch of an initiator that is away, and no longer known, puts its items again
  // once there is the job. Of each job one step: queues first, and what names them by a later call.
  // Likewise at each job that was replaced then. The error is the first one; it does not keep other
  // jobs from their turn.
  absl::Status Sweep();

 private:
  using Names = absl::flat_hash_set<std::string>;

  absl::StatusOr<Names> QueueNames();
  // `names`: all queues there are.
  absl::Status Remove(const job::DeletedJob& job, const Names& names);
  absl::Status RemoveQueues(const std::string& job, const std::vector<queue::QueueId>& queues);
  absl::Status ForgetHeldKeys(const queue::QueueId& queue);
  // Of a job without queues.
  absl::Status RemoveRecords(const job::DeletedJob& job);
  // False: a group still has a member, or one that may live.
  absl::StatusOr<bool> RemoveGroups(const std::string& job);
  absl::StatusOr<bool> HasOpenBatch(const std::string& job,
                                    const std::string& but_of_revision = "");
  // What defined the job before.
  absl::Status RemoveReplaced(const job::DeletedJob& job, const Names& names);
  // Those of the job's queues that there are.
  std::vector<queue::QueueId> QueuesOf(const std::string& job, const Names& names) const;
  // Whether there is more than 0 `of` what a queue's statistics count.
  absl::StatusOr<bool> HasAny(const std::vector<queue::QueueId>& queues,
                              const std::function<int64_t(const queue::QueueStats&)>& of);

  const Dependencies deps_;
  const std::string account_;
  // Of groups that had members at the last call: who has not spoken since then is dead.
  std::map<std::string, partition::PartitionAdmin::Presences> presences_;
};

// A batch of the job that is not over, and not of `but_of_revision`, if that is not empty; nullopt:
// the ledger has none. Errors are the ledger's.
absl::StatusOr<std::optional<uint64_t>> FindOpenBatch(ledger::BatchLedger& ledger,
                                                      absl::string_view job,
                                                      absl::string_view but_of_revision = "");

}  // namespace muster::initiator::retention
