#include "services/initiator/batch/deleted_jobs.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/log.h"
#include "muster/base/status.h"
#include "muster/item/queue_names.h"
#include "muster/job/limits.h"

namespace muster::initiator::batch {

absl::Status DeletedJobs::Sweep() {
  if (deps_.jobs == nullptr) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(const std::vector<job::DeletedJob> deleted, deps_.jobs->Deleted());
  if (deleted.empty()) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(const Names names, QueueNames());
  absl::Status failed;
  for (const job::DeletedJob& job : deleted) {
    if (deps_.clock->Now() < job.deleted + kDeletedFor) continue;
    failed.Update(
        base::Annotate(RemoveQueuesOf(job, names), absl::StrCat("deleted job ", job.name)));
  }
  return failed;
}

absl::StatusOr<DeletedJobs::Names> DeletedJobs::QueueNames() {
  Names names;
  queue::ListQueuesRequest page;
  page.account = account_;
  for (;;) {
    MUSTER_ASSIGN_OR_RETURN(const std::vector<queue::QueueInfo> queues,
                            deps_.queues->ListQueues(page));
    for (const queue::QueueInfo& queue : queues) names.insert(queue.id.name);
    if (queues.size() < static_cast<size_t>(page.max_results)) return names;
    page.after = queues.back().id.name;
  }
}

// Forgets the job only when a later sweep finds none of its queues: a process that has not noticed
// the end of the job, such as one that was suspended, may have made one anew.
absl::Status DeletedJobs::RemoveQueuesOf(const job::DeletedJob& job, const Names& names) {
  MUSTER_ASSIGN_OR_RETURN(const bool is_there, deps_.jobs->Has(job.name));
  if (is_there) return deps_.jobs->ForgetDeleted(job);
  std::vector<queue::QueueId> queues =
      item::InputQueues(account_, job.name, static_cast<int>(job::kMaxPartitions));
  queues.push_back(item::OutputQueue(account_, job.name, 0));
  std::erase_if(queues, [&](const queue::QueueId& queue) { return !names.contains(queue.name); });
  if (queues.empty()) {
    base::Log(base::kInfo, "nothing is left of the queues of a deleted job", {{"job", job.name}});
    return deps_.jobs->ForgetDeleted(job);
  }
  MUSTER_ASSIGN_OR_RETURN(const bool has_open_batch, HasOpenBatch(job.name));
  if (has_open_batch) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(const bool has_dead_letters, HasDeadLetters(queues));
  if (has_dead_letters) return absl::OkStatus();
  for (const queue::QueueId& queue : queues) {
    const absl::Status deleted = deps_.queues->DeleteQueue(queue);
    if (!absl::IsNotFound(deleted)) MUSTER_RETURN_IF_ERROR(deleted);
  }
  deps_.job_queues->Forget(job.name);
  base::Log(base::kInfo, "the queues of a deleted job are removed",
            {{"job", job.name}, {"queues", queues.size()}});
  return absl::OkStatus();
}

absl::StatusOr<bool> DeletedJobs::HasOpenBatch(const std::string& job) {
  MUSTER_ASSIGN_OR_RETURN(std::optional<uint64_t> batch, FindOpenBatch(*deps_.ledger, job));
  if (!batch.has_value() && deps_.find_elsewhere) {
    MUSTER_ASSIGN_OR_RETURN(batch, deps_.find_elsewhere(job));
  }
  return batch.has_value();
}

absl::StatusOr<bool> DeletedJobs::HasDeadLetters(const std::vector<queue::QueueId>& queues) {
  for (const queue::QueueId& queue : queues) {
    const absl::StatusOr<queue::QueueStats> stats = deps_.queues->Stats(queue);
    if (absl::IsNotFound(stats.status())) continue;
    MUSTER_RETURN_IF_ERROR(stats.status());
    if (stats->poison > 0) return true;
  }
  return false;
}

absl::StatusOr<std::optional<uint64_t>> FindOpenBatch(ledger::BatchLedger& ledger,
                                                      absl::string_view job) {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<uint64_t> open, ledger.ListOpen());
  for (const uint64_t number : open) {
    MUSTER_ASSIGN_OR_RETURN(const ledger::Batch batch, ledger.Get(number));
    if (batch.job == job && !ledger::IsOver(batch.state)) return number;
  }
  return std::nullopt;
}

}  // namespace muster::initiator::batch
