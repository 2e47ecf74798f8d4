// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/retention/remover.h"

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "muster/base/failpoint.h"
#include "muster/base/log.h"
#include "muster/base/retry.h"
#include "muster/base/status.h"
#include "muster/item/queue_names.h"
#include "muster/item/redrive.h"
#include "muster/job/job_file.h"

namespace muster::initiator::retention {
namespace {

// Claims that cannot be released are passed over, up to so many: each is read once a call.
constexpr size_t kMaxPassedClaims = 1000;

// Likewise batches of which something cannot be removed, as a file that the user may not delete.
constexpr size_t kMaxFailing = 10'000;
constexpr absl::Duration kMinFailingPause = absl::Minutes(1);
constexpr absl::Duration kMaxFailingPause = absl::Hours(1);

// By which the clocks of services and servers may differ.
constexpr absl::Duration kClockSlack = absl::Minutes(5);

constexpr size_t kItemsPage = 1024;  // that a read of the ledger answers

// Those that the report has counted so far.
absl::StatusOr<absl::flat_hash_set<uint64_t>> DeadItemsIn(report::ReportClient* report_client,
                                                          const ledger::Batch& batch,
                                                          const report::Progress& counted) {
  absl::flat_hash_set<uint64_t> dead;
  if (counted.items_dead == 0) return dead;
  for (uint64_t from = 0;;) {
    MUSTER_ASSIGN_OR_RETURN(
        const std::vector<uint64_t> page,
        report_client->DeadLetteredItems(batch.number, from, report::kMaxReportItems));
    dead.insert(page.begin(), page.end());
    if (page.size() < report::kMaxReportItems) return dead;
    from = page.back() + 1;
  }
}

// NotFound, Unimplemented: the report does not know which items are dead-lettered.
absl::StatusOr<absl::flat_hash_set<uint64_t>> DeadItems(report::ReportClient* report_client,
                                                        const ledger::Batch& batch) {
  MUSTER_ASSIGN_OR_RETURN(const report::Progress counted, report_client->GetProgress(batch.number));
  if (static_cast<uint64_t>(counted.items()) < batch.items) {
    return absl::NotFoundError("not every item is counted");
  }
  return DeadItemsIn(report_client, batch, counted);
}

// Deletes the blobs of a batch, among them the copies of what were dead letters, but for those in
// `keep`. In a data directory of its own the batch's initiator is alone, and blobs are files: any
// item may have a copy, and to look costs little. In a store that is shared, BlobSweep finds the
// copies of items that were redriven.
absl::Status DeleteBlobsAndCopies(ledger::BatchLedger* ledger, blob::BlobStore* blobs,
                                  const ledger::Batch& batch,
                                  const absl::flat_hash_set<uint64_t>& keep) {
  if (!batch.owner.empty()) return DeleteItemBlobs(ledger, blobs, batch, keep);
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<blob::BlobScan> scan, blobs->Scan());
  MUSTER_ASSIGN_OR_RETURN(const std::vector<blob::BlobEntry> any, scan->Next(1));
  if (any.empty()) return absl::OkStatus();
  return DeleteItemBlobs(ledger, blobs, batch, keep, /*longer_than=*/0);
}

// All that is due goes in one step, which costs a third of three. A batch with a claim on its
// request id goes step by step: its content goes also while the claim cannot be released.
ledger::Removal WhatIsDue(const ledger::Batch& batch, absl::Time now) {
  const absl::Duration kept = ledger::RetentionOf(batch).batch;
  const bool all = batch.completed.value_or(batch.created) + kept <= now;
  return all && !batch.request_claimed ? ledger::Removal::kBatch : ledger::NextRemoval(batch).what;
}

}  // namespace

absl::Status KeepForRedrive(ledger::BatchLedger* ledger, content::LedgerContent* content,
                            const ledger::Batch& batch, uint64_t index) {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<ledger::ItemBoundary> item,
                          ledger->Items(batch.number, index, 1));
  if (item.empty()) return absl::NotFoundError("the ledger lacks the item");
  if (item.front().oversized) return absl::OkStatus();  // its content is not read
  // Its records are taken from all over the source, so they always travel with the message.
  if (item.front().window.has_value()) return absl::OkStatus();
  return content->Copy({batch.number, static_cast<uint32_t>(index), batch.owner,
                        item.front().length, item.front().content});
}

absl::Status DropPoison(queue::QueueStore* queues, const std::string& account,
                        const ledger::Batch& batch, std::set<uint64_t> items) {
  const absl::StatusOr<job::JobDefinition> job = job::ParseJob(batch.job_definition, batch.job);
  if (!job.ok() || job->on_poison == job::OnPoison::kHold) return absl::OkStatus();
  // All of its items were put before it was over.
  const absl::Time put_by = batch.completed.value_or(batch.created) + kClockSlack;
  for (const queue::QueueId& queue : item::InputQueues(account, batch.job, job->queue.partitions)) {
    const absl::Status dropped =
        item::DropPoisonOf(queue, batch.number, &items, *queues, put_by).status();
    if (!absl::IsNotFound(dropped)) MUSTER_RETURN_IF_ERROR(dropped);
  }
  return absl::OkStatus();
}

absl::Status DeleteNeedlessBlobs(ledger::BatchLedger* ledger, report::ReportClient* report_client,
                                 blob::BlobStore* blobs, const ledger::Batch& batch) {
  absl::StatusOr<absl::flat_hash_set<uint64_t>> keep = absl::flat_hash_set<uint64_t>();
  if (batch.state == ledger::BatchState::kComplete) keep = DeadItems(report_client, batch);
  const bool unknown = absl::IsNotFound(keep.status()) || absl::IsUnimplemented(keep.status());
  if (!unknown) {
    MUSTER_RETURN_IF_ERROR(keep.status());
    MUSTER_FAILPOINT("initiator.before_blobs_deleted");
    MUSTER_RETURN_IF_ERROR(DeleteBlobsAndCopies(ledger, blobs, batch, *keep));
    MUSTER_FAILPOINT("initiator.after_blobs_deleted");
  }
  return ledger->NoteBlobsDeleted(batch.number, batch.completed.value_or(batch.created));
}

bool BatchRemover::IsPassedOver(uint64_t batch) {
  base::MutexLock lock(&mu_);
  const auto failing = failing_.find(batch);
  return failing != failing_.end() && failing->second.again_at.has_value() &&
         deps_.clock->Monotonic() < *failing->second.again_at;
}

void BatchRemover::Note(uint64_t batch, const absl::Status& removed, const absl::Status& released) {
  base::MutexLock lock(&mu_);
  if (removed.ok() && released.ok()) {
    failing_.erase(batch);
    return;
  }
  if (!failing_.contains(batch) && failing_.size() >= kMaxFailing) return;
  Failing& failing = failing_[batch];
  if (++failing.failures == 1) failing.problem.since = deps_.clock->Now();
  failing.problem.why = removed.ok() ? released : removed;
  failing.again_at.reset();
  if (removed.ok()) return;
  failing.again_at = deps_.clock->Monotonic() +
                     base::ExponentialBackoff(failing.failures, kMinFailingPause, kMaxFailingPause);
}

std::optional<RemovalProblem> BatchRemover::ProblemOf(uint64_t batch) {
  base::MutexLock lock(&mu_);
  const auto failing = failing_.find(batch);
  if (failing == failing_.end() || !failing->second.persists()) return std::nullopt;
  return failing->second.problem;
}

std::vector<uint64_t> BatchRemover::Problems(uint64_t below, size_t max) {
  base::MutexLock lock(&mu_);
  std::vector<uint64_t> batches;
  for (auto it = failing_.lower_bound(below); it != failing_.begin() && batches.size() < max;) {
    --it;
    if (it->second.persists()) batches.push_back(it->first);
  }
  return batches;
}

absl::StatusOr<size_t> BatchRemover::RemoveDue(size_t max) {
  const absl::Time now = deps_.clock->Now();
  size_t passed = std::min(claimed_.load(), kMaxPassedClaims);
  {
    base::MutexLock lock(&mu_);
    passed +=
        static_cast<size_t>(std::count_if(failing_.begin(), failing_.end(), [](const auto& entry) {
          return entry.second.again_at.has_value();
        }));
  }
  MUSTER_ASSIGN_OR_RETURN(const std::vector<uint64_t> due,
                          deps_.ledger->ListDue(now, max + passed));
  absl::Status failed, released;
  size_t claimed = 0, removals = 0, failures = 0;
  for (const uint64_t number : due) {
    if (IsPassedOver(number)) continue;
    const absl::StatusOr<ledger::Batch> batch = deps_.ledger->Get(number);
    // Deleted, or reopened by a redrive, meanwhile.
    if (absl::IsNotFound(batch.status()) || (batch.ok() && !ledger::IsOver(batch->state))) continue;
    absl::Status removed = batch.status();
    const bool was_released = released.ok();
    if (removed.ok()) removed = Remove(*batch, WhatIsDue(*batch, now), &released);
    const bool keeps_claim = was_released && !released.ok();
    Note(number, removed, keeps_claim ? released : absl::OkStatus());
    ++(removed.ok() ? removals : failures);
    failed.Update(base::Annotate(removed, absl::StrCat("batch ", number)));
    if (keeps_claim) {
      failed.Update(base::Annotate(
          released, absl::StrCat("batch ", number, ": its request id stays claimed for now")));
    }
    if (!released.ok() && batch.ok() && batch->request_claimed) ++claimed;
  }
  claimed_ = claimed;
  if (!released.ok() || (removals == 0 && failures > 0)) return failed;
  if (failures > 0) {
    base::Log(base::kWarning, "what some batches have left stays for now",
              {{"batches", failures}, {"why", failed.ToString()}});
  }
  return removals;
}

absl::Status BatchRemover::Delete(uint64_t number) {
  MUSTER_ASSIGN_OR_RETURN(const ledger::Batch batch, deps_.ledger->Get(number));
  if (!ledger::IsOver(batch.state)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "batch ", number, " is ", ledger::BatchStateName(batch.state), ": cancel it first"));
  }
  MUSTER_RETURN_IF_ERROR(RemoveContent(batch));
  return RemoveBatch(batch);
}

absl::Status BatchRemover::DeleteContent(uint64_t number) {
  MUSTER_ASSIGN_OR_RETURN(const ledger::Batch batch, deps_.ledger->Get(number));
  absl::Status released;
  MUSTER_RETURN_IF_ERROR(Remove(batch, ledger::Removal::kContent, &released));
  return released;
}

absl::Status BatchRemover::Remove(const ledger::Batch& batch, ledger::Removal what,
                                  absl::Status* released) {
  switch (what) {
    case ledger::Removal::kBlobs:
      return DeleteNeedlessBlobs(deps_.ledger, deps_.report_client, deps_.blobs, batch);
    case ledger::Removal::kContent: {
      MUSTER_RETURN_IF_ERROR(RemoveContent(batch));
      if (!released->ok()) return absl::OkStatus();
      const absl::Status release = ReleaseRequest(batch);
      // A store that does not answer is not asked for each batch. What is wrong with one claim, as
      // with a record that is damaged, keeps no other.
      if (!absl::IsUnavailable(release) && !absl::IsDeadlineExceeded(release)) return release;
      *released = release;
      return absl::OkStatus();
    }
    case ledger::Removal::kItems:
      return RemoveItems(batch);
    case ledger::Removal::kBatch:
      return RemoveBatch(batch);
  }
  return absl::OkStatus();
}

absl::Status BatchRemover::RemoveContent(const ledger::Batch& batch) {
  MUSTER_RETURN_IF_ERROR(KeepDeadLetters(batch));
  // The ledger before the upload: it refuses a batch that a redrive has just opened again.
  MUSTER_RETURN_IF_ERROR(deps_.ledger->DropContent(batch.number));
  return DeleteUpload(batch);
}

// A redrive of a dead letter reads its content, which so stays as long as the batch's items.
absl::Status BatchRemover::KeepDeadLetters(const ledger::Batch& batch) {
  if (!deps_.keep_for_redrive || batch.content_deleted) return absl::OkStatus();
  if (batch.state != ledger::BatchState::kComplete) return absl::OkStatus();
  const absl::StatusOr<absl::flat_hash_set<uint64_t>> dead = DeadItems(deps_.report_client, batch);
  // The report has lost the batch, or cannot tell: then its poison cannot be redriven either.
  if (absl::IsNotFound(dead.status()) || absl::IsUnimplemented(dead.status())) {
    return absl::OkStatus();
  }
  MUSTER_RETURN_IF_ERROR(dead.status());
  for (const uint64_t index : *dead) {
    const absl::Status kept = deps_.keep_for_redrive(batch, index);
    // Damaged content is no reason to keep the rest for ever.
    if (absl::IsDataLoss(kept) || absl::IsNotFound(kept)) {
      base::LogUnlessOk(base::kWarning, "a dead letter loses its content", kept,
                        {{"batch", batch.number}, {"item", index}});
      continue;
    }
    MUSTER_RETURN_IF_ERROR(kept);
  }
  return absl::OkStatus();
}

absl::Status BatchRemover::SettleRequest(const ledger::Batch& batch) const {
  return deps_.settle_request ? deps_.settle_request(batch) : absl::OkStatus();
}

// After the content: a batch that a redrive has just opened again keeps its claim.
absl::Status BatchRemover::ReleaseRequest(const ledger::Batch& batch) {
  if (!batch.request_claimed) return absl::OkStatus();
  MUSTER_RETURN_IF_ERROR(SettleRequest(batch));
  if (deps_.release_request) MUSTER_RETURN_IF_ERROR(deps_.release_request(batch));
  return deps_.ledger->NoteRequestReleased(batch.number);
}

absl::Status BatchRemover::DeleteUpload(const ledger::Batch& batch) {
  if (deps_.content == nullptr || !deps_.content->Stores(batch)) return absl::OkStatus();
  return deps_.content->Delete(batch.number);
}

// The messages of dead letters first: once the ledger has begun, the rest is not tried again before
// the batch's own removal. A redrive that is about to make one ready opens the batch, whose items
// are then put again. From the ledger's first step on none can, so nothing needs the blobs. A crash
// before the last step leaves boundaries, by which the batch's own removal finds the blobs.
absl::Status BatchRemover::RemoveItems(const ledger::Batch& batch) {
  MUSTER_ASSIGN_OR_RETURN(const absl::flat_hash_set<uint64_t> dead, DeadLettersOf(batch));
  if (!dead.empty() && deps_.drop_poison) {
    MUSTER_RETURN_IF_ERROR(deps_.drop_poison(batch, {dead.begin(), dead.end()}));
  }
  MUSTER_RETURN_IF_ERROR(deps_.ledger->BeginToDropItems(batch.number));
  // The copies of what dead letters contain.
  for (const uint64_t item : dead) {
    MUSTER_RETURN_IF_ERROR(deps_.blobs->Delete(
        item::BlobName(batch.number, static_cast<uint32_t>(item), batch.owner)));
  }
  MUSTER_RETURN_IF_ERROR(DeleteBlobsAndCopies(deps_.ledger, deps_.blobs, batch, {}));
  // A crash between the two steps of RemoveContent has left it.
  MUSTER_RETURN_IF_ERROR(DeleteUpload(batch));
  return deps_.ledger->DropItems(batch.number);
}

// Of the items that the report has counted so far. None where the report has lost the batch, or
// cannot tell, as of an older muster. None either where another initiator has drawn the batch's
// number, too: the report and the queues have what is that one's.
absl::StatusOr<absl::flat_hash_set<uint64_t>> BatchRemover::DeadLettersOf(
    const ledger::Batch& batch) {
  const absl::flat_hash_set<uint64_t> none;
  MUSTER_ASSIGN_OR_RETURN(const bool is_anothers, HasAnotherOwner(deps_.report_client, batch));
  if (is_anothers) return none;
  const absl::StatusOr<report::Progress> counted = deps_.report_client->GetProgress(batch.number);
  if (absl::IsNotFound(counted.status())) return none;
  MUSTER_RETURN_IF_ERROR(counted.status());
  absl::StatusOr<absl::flat_hash_set<uint64_t>> dead =
      DeadItemsIn(deps_.report_client, batch, *counted);
  if (absl::IsNotFound(dead.status()) || absl::IsUnimplemented(dead.status())) return none;
  return dead;
}

absl::Status BatchRemover::RemoveBatch(const ledger::Batch& batch) {
  // First, because nothing would release the request id once the batch is gone from the ledger. A
  // batch record that was restored from its copy says once more that the id is claimed.
  MUSTER_RETURN_IF_ERROR(ReleaseRequest(batch));
  MUSTER_RETURN_IF_ERROR(SettleRequest(batch));
  MUSTER_RETURN_IF_ERROR(RemoveItems(batch));
  MUSTER_ASSIGN_OR_RETURN(bool done, HasAnotherOwner(deps_.report_client, batch));
  while (!done) {
    MUSTER_ASSIGN_OR_RETURN(done, deps_.report_client->ForgetBatch(batch.number));
  }
  MUSTER_RETURN_IF_ERROR(deps_.ledger->Delete(batch.number));
  Note(batch.number, absl::OkStatus(), absl::OkStatus());
  base::Log(base::kInfo, "a batch is deleted", {{"batch", batch.number}, {"job", batch.job}});
  return absl::OkStatus();
}

absl::StatusOr<bool> HasAnotherOwner(report::ReportClient* report_client,
                                     const ledger::Batch& batch) {
  if (batch.disowned || batch.owner.empty()) return batch.disowned;
  const absl::StatusOr<report::Progress> counted = report_client->GetProgress(batch.number);
  if (absl::IsNotFound(counted.status())) return false;
  MUSTER_RETURN_IF_ERROR(counted.status());
  return !counted->owner.empty() && counted->owner != batch.owner;
}

absl::Status DeleteItemBlobs(ledger::BatchLedger* ledger, blob::BlobStore* blobs,
                             const ledger::Batch& batch, const absl::flat_hash_set<uint64_t>& keep,
                             uint64_t longer_than) {
  for (uint64_t first = 0; first < batch.items;) {
    MUSTER_ASSIGN_OR_RETURN(const std::vector<ledger::ItemBoundary> items,
                            ledger->Items(batch.number, first, kItemsPage));
    if (items.empty()) break;
    for (size_t i = 0; i < items.size(); ++i) {
      if (items[i].length <= longer_than || keep.contains(first + i)) continue;
      MUSTER_RETURN_IF_ERROR(blobs->Delete(
          item::BlobName(batch.number, static_cast<uint32_t>(first + i), batch.owner)));
    }
    first += items.size();
  }
  return absl::OkStatus();
}

}  // namespace muster::initiator::retention
