#include "services/initiator/batch/remover.h"

#include <algorithm>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "muster/base/failpoint.h"
#include "muster/base/log.h"
#include "muster/base/status.h"
#include "services/initiator/batch/enqueuer.h"

namespace muster::initiator::batch {
namespace {

// Claims that cannot be released are passed over, up to so many: each is read once a call.
constexpr size_t kMaxPassedClaims = 1000;

// NotFound, Unimplemented: the report does not know which items are dead-lettered.
absl::StatusOr<absl::flat_hash_set<uint64_t>> DeadItems(report::ReportClient* report_client,
                                                        const ledger::Batch& batch) {
  absl::flat_hash_set<uint64_t> dead;
  MUSTER_ASSIGN_OR_RETURN(const report::Progress counted, report_client->GetProgress(batch.number));
  if (static_cast<uint64_t>(counted.items()) < batch.items) {
    return absl::NotFoundError("not every item is counted");
  }
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

}  // namespace

absl::Status DeleteNeedlessBlobs(ledger::BatchLedger* ledger, report::ReportClient* report_client,
                                 blob::BlobStore* blobs, const ledger::Batch& batch) {
  absl::StatusOr<absl::flat_hash_set<uint64_t>> keep = absl::flat_hash_set<uint64_t>();
  if (batch.state == ledger::BatchState::kComplete) keep = DeadItems(report_client, batch);
  const bool unknown = absl::IsNotFound(keep.status()) || absl::IsUnimplemented(keep.status());
  if (!unknown) {
    MUSTER_RETURN_IF_ERROR(keep.status());
    MUSTER_FAILPOINT("initiator.before_blobs_deleted");
    MUSTER_RETURN_IF_ERROR(DeleteItemBlobs(ledger, blobs, batch, *keep));
    MUSTER_FAILPOINT("initiator.after_blobs_deleted");
  }
  return ledger->NoteBlobsDeleted(batch.number, batch.completed.value_or(batch.created));
}

absl::StatusOr<size_t> BatchRemover::RemoveDue(size_t max) {
  const absl::Time now = deps_.clock->Now();
  const size_t passed = std::min(claimed_.load(), kMaxPassedClaims);
  MUSTER_ASSIGN_OR_RETURN(const std::vector<uint64_t> due,
                          deps_.ledger->ListDue(now, max + passed));
  absl::Status failed, released;
  size_t claimed = 0;
  for (const uint64_t number : due) {
    const absl::StatusOr<ledger::Batch> batch = deps_.ledger->Get(number);
    // Deleted, or reopened by a redrive, meanwhile.
    if (absl::IsNotFound(batch.status()) || (batch.ok() && !ledger::IsOver(batch->state))) continue;
    absl::Status removed = batch.status();
    const bool was_released = released.ok();
    if (removed.ok()) removed = Remove(*batch, ledger::NextRemoval(*batch).what, &released);
    failed.Update(base::Annotate(removed, absl::StrCat("batch ", number)));
    if (was_released && !released.ok()) {
      failed.Update(base::Annotate(
          released, absl::StrCat("batch ", number, ": its request id stays claimed for now")));
    }
    if (!released.ok() && batch.ok() && batch->request_claimed) ++claimed;
  }
  claimed_ = claimed;
  if (!failed.ok()) return failed;
  return due.size();
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

absl::Status BatchRemover::Remove(const ledger::Batch& batch, ledger::Removal what,
                                  absl::Status* released) {
  switch (what) {
    case ledger::Removal::kBlobs:
      return DeleteNeedlessBlobs(deps_.ledger, deps_.report_client, deps_.blobs, batch);
    case ledger::Removal::kContent:
      MUSTER_RETURN_IF_ERROR(RemoveContent(batch));
      // A store that does not answer is not asked for each batch.
      if (released->ok()) *released = ReleaseRequest(batch);
      return absl::OkStatus();
    case ledger::Removal::kItems:
      return RemoveItems(batch);
    case ledger::Removal::kBatch:
      return RemoveBatch(batch);
  }
  return absl::OkStatus();
}

absl::Status BatchRemover::RemoveContent(const ledger::Batch& batch) {
  // The ledger first: it refuses a batch that a redrive has just opened again.
  MUSTER_RETURN_IF_ERROR(deps_.ledger->DropContent(batch.number));
  return DeleteUpload(batch);
}

// After the content: a batch that a redrive has just opened again keeps its claim.
absl::Status BatchRemover::ReleaseRequest(const ledger::Batch& batch) {
  if (!batch.request_claimed) return absl::OkStatus();
  if (deps_.release_request) MUSTER_RETURN_IF_ERROR(deps_.release_request(batch));
  return deps_.ledger->NoteRequestReleased(batch.number);
}

absl::Status BatchRemover::DeleteUpload(const ledger::Batch& batch) {
  if (deps_.content == nullptr || !deps_.content->Stores(batch)) return absl::OkStatus();
  return deps_.content->Delete(batch.number);
}

// From the first step on no redrive can open the batch again, so nothing needs its blobs. A crash
// before the last step leaves boundaries, by which the batch's own removal finds the blobs.
absl::Status BatchRemover::RemoveItems(const ledger::Batch& batch) {
  MUSTER_RETURN_IF_ERROR(deps_.ledger->BeginToDropItems(batch.number));
  MUSTER_RETURN_IF_ERROR(DeleteItemBlobs(deps_.ledger, deps_.blobs, batch, {}));
  // A crash between the two steps of RemoveContent has left it.
  MUSTER_RETURN_IF_ERROR(DeleteUpload(batch));
  return deps_.ledger->DropItems(batch.number);
}

absl::Status BatchRemover::RemoveBatch(const ledger::Batch& batch) {
  // Once the ledger has no batch of it, nobody would release the id. A record that was made again
  // of its copy says once more that it is claimed.
  MUSTER_RETURN_IF_ERROR(ReleaseRequest(batch));
  MUSTER_RETURN_IF_ERROR(RemoveItems(batch));
  // What the report has under the number of a disowned batch is another initiator's.
  for (bool done = batch.disowned; !done;) {
    MUSTER_ASSIGN_OR_RETURN(done, deps_.report_client->ForgetBatch(batch.number));
  }
  MUSTER_RETURN_IF_ERROR(deps_.ledger->Delete(batch.number));
  base::Log(base::kInfo, "a batch is deleted", {{"batch", batch.number}, {"job", batch.job}});
  return absl::OkStatus();
}

}  // namespace muster::initiator::batch
