// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/retention/deleted_jobs.h"

#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "muster/base/log.h"
#include "muster/base/status.h"
#include "muster/item/held_keys.h"
#include "muster/item/queue_names.h"
#include "muster/job/limits.h"

namespace muster::initiator::retention {

absl::Status DeletedJobs::Sweep() {
  if (deps_.jobs == nullptr) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(const std::vector<job::DeletedJob> replaced, deps_.jobs->Replaced());
  MUSTER_ASSIGN_OR_RETURN(const std::vector<job::DeletedJob> deleted, deps_.jobs->Deleted());
  if (deleted.empty()) presences_.clear();
  if (deleted.empty() && replaced.empty()) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(const Names names, QueueNames());
  const absl::Time until = deps_.clock->Now() - kDeletedFor;
  absl::Status failed;
  for (const job::DeletedJob& job : replaced) {
    if (job.deleted > until) continue;
    failed.Update(
        base::Annotate(RemoveReplaced(job, names), absl::StrCat("replaced job ", job.name)));
  }
  for (const job::DeletedJob& job : deleted) {
    if (job.deleted > until) continue;
    failed.Update(base::Annotate(Remove(job, names), absl::StrCat("deleted job ", job.name)));
  }
  return failed;
}

// An item that was put twice may lie in the queue although its batch is over: without its revision,
// no worker could take it away.
absl::Status DeletedJobs::RemoveReplaced(const job::DeletedJob& job, const Names& names) {
  MUSTER_ASSIGN_OR_RETURN(const bool is_there, deps_.jobs->Has(job.name));
  if (!is_there) return deps_.jobs->ForgetReplaced(job);  // it is among the deleted ones
  const auto is_needed = [&](const std::string& current) -> absl::StatusOr<bool> {
    MUSTER_ASSIGN_OR_RETURN(const bool has_open_batch, HasOpenBatch(job.name, current));
    if (has_open_batch) return true;
    return HasAny(QueuesOf(job.name, names), &queue::QueueStats::stored);
  };
  MUSTER_ASSIGN_OR_RETURN(const bool removed, deps_.jobs->RemoveDefinitions(job.name, is_needed));
  return removed ? deps_.jobs->ForgetReplaced(job) : absl::OkStatus();
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

std::vector<queue::QueueId> DeletedJobs::QueuesOf(const std::string& job,
                                                  const Names& names) const {
  std::vector<queue::QueueId> queues =
      item::InputQueues(account_, job, static_cast<int>(job::kMaxPartitions));
  queues.push_back(item::OutputQueue(account_, job, 0));
  std::erase_if(queues, [&](const queue::QueueId& queue) { return !names.contains(queue.name); });
  return queues;
}

// Goes on to the records only when a later sweep finds none of the queues: a process that has not
// noticed the end of the job, such as one that was suspended, may have made one anew.
absl::Status DeletedJobs::Remove(const job::DeletedJob& job, const Names& names) {
  MUSTER_ASSIGN_OR_RETURN(const bool is_there, deps_.jobs->Has(job.name));
  if (is_there) return deps_.jobs->ForgetDeleted(job);
  const std::vector<queue::QueueId> queues = QueuesOf(job.name, names);
  return queues.empty() ? RemoveRecords(job) : RemoveQueues(job.name, queues);
}

absl::Status DeletedJobs::RemoveQueues(const std::string& job,
                                       const std::vector<queue::QueueId>& queues) {
  MUSTER_ASSIGN_OR_RETURN(const bool has_open_batch, HasOpenBatch(job));
  if (has_open_batch) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(const bool has_dead_letters, HasAny(queues, &queue::QueueStats::poison));
  if (has_dead_letters) return absl::OkStatus();
  for (const queue::QueueId& queue : queues) {
    MUSTER_RETURN_IF_ERROR(ForgetHeldKeys(queue));
    const absl::Status deleted = deps_.queues->DeleteQueue(queue);
    if (!absl::IsNotFound(deleted)) MUSTER_RETURN_IF_ERROR(deleted);
  }
  deps_.forget_queues(job);
  base::Log(base::kInfo, "the queues of a deleted job are removed",
            {{"job", job}, {"queues", queues.size()}});
  return absl::OkStatus();
}

// Keys are held for dead letters, of which the queue has none any more.
absl::Status DeletedJobs::ForgetHeldKeys(const queue::QueueId& queue) {
  if (deps_.records == nullptr) return absl::OkStatus();
  return item::HeldKeyStore(deps_.records).Forget(queue);
}

absl::Status DeletedJobs::RemoveRecords(const job::DeletedJob& job) {
  MUSTER_ASSIGN_OR_RETURN(const bool has_open_batch, HasOpenBatch(job.name));
  if (has_open_batch) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(const bool groups_are_gone, RemoveGroups(job.name));
  // Asks once more: an initiator may have come back meanwhile.
  const auto is_needed = [&](const std::string&) { return HasOpenBatch(job.name); };
  MUSTER_ASSIGN_OR_RETURN(const bool removed, deps_.jobs->RemoveDefinitions(job.name, is_needed));
  if (!groups_are_gone || !removed) return absl::OkStatus();
  base::Log(base::kInfo, "nothing is left of a deleted job", {{"job", job.name}});
  return deps_.jobs->ForgetDeleted(job);
}

absl::StatusOr<bool> DeletedJobs::RemoveGroups(const std::string& job) {
  if (deps_.records == nullptr) return true;
  partition::PartitionAdmin admin(deps_.records);
  MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> groups, admin.Groups());
  bool gone = true;
  for (const std::string& group : groups) {
    if (!absl::StartsWith(group, item::OrderGroupPrefix(account_, job))) continue;
    const partition::PartitionAdmin::Presences seen = std::exchange(presences_[group], {});
    presences_.erase(group);
    const absl::Status forgotten = admin.Forget(group, seen);
    if (!absl::IsFailedPrecondition(forgotten)) {
      MUSTER_RETURN_IF_ERROR(forgotten);
      continue;
    }
    gone = false;
    MUSTER_ASSIGN_OR_RETURN(presences_[group], admin.PresencesIn(group));
  }
  return gone;
}

absl::StatusOr<bool> DeletedJobs::HasOpenBatch(const std::string& job,
                                               const std::string& but_of_revision) {
  MUSTER_ASSIGN_OR_RETURN(std::optional<uint64_t> batch,
                          FindOpenBatch(*deps_.ledger, job, but_of_revision));
  if (!batch.has_value() && deps_.find_elsewhere) {
    MUSTER_ASSIGN_OR_RETURN(batch, deps_.find_elsewhere(job, but_of_revision));
  }
  return batch.has_value();
}

absl::StatusOr<bool> DeletedJobs::HasAny(
    const std::vector<queue::QueueId>& queues,
    const std::function<int64_t(const queue::QueueStats&)>& of) {
  for (const queue::QueueId& queue : queues) {
    const absl::StatusOr<queue::QueueStats> stats = deps_.queues->Stats(queue);
    if (absl::IsNotFound(stats.status())) continue;
    MUSTER_RETURN_IF_ERROR(stats.status());
    if (of(*stats) > 0) return true;
  }
  return false;
}

absl::StatusOr<std::optional<uint64_t>> FindOpenBatch(ledger::BatchLedger& ledger,
                                                      absl::string_view job,
                                                      absl::string_view but_of_revision) {
  for (uint64_t from = 0;; ++from) {
    MUSTER_ASSIGN_OR_RETURN(from, ledger.NextOpenOfJob(job, from));
    if (from == 0) return std::nullopt;
    if (but_of_revision.empty()) return from;
    const absl::StatusOr<ledger::Batch> batch = ledger.Get(from);
    if (absl::IsNotFound(batch.status())) continue;  // it was deleted meanwhile
    MUSTER_RETURN_IF_ERROR(batch.status());
    if (!ledger::IsOver(batch->state) && batch->job_revision != but_of_revision) return from;
  }
}

}  // namespace muster::initiator::retention
