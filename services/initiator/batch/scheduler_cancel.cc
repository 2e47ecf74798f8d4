// SPDX-License-Identifier: Apache-2.0

// How a batch is cancelled: recorded first, then told to its workers and its sender.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "muster/base/log.h"
#include "muster/base/retry.h"
#include "muster/base/status.h"
#include "muster/base/text.h"
#include "services/initiator/batch/scheduler.h"

namespace muster::initiator::batch {

namespace {

// The most bytes that the ledger keeps of a cancel's reason.
constexpr size_t kMaxKeptReasonBytes = 1024;

}  // namespace

// Best effort: a worker that misses the event only works in vain. While the report does not answer,
// the number is taken for the batch's own.
void BatchScheduler::PublishCancellation(uint64_t cancelled) {
  const absl::StatusOr<ledger::Batch> batch = tools_.stores.ledger->Get(cancelled);
  if (batch.ok() && retention::HasAnotherOwner(tools_.report_client, *batch).value_or(false)) {
    RefuseContent(cancelled);
    return;
  }
  absl::Status told;
  if (tools_.cancelled != nullptr) told = tools_.cancelled->Add(cancelled);
  told.Update(
      tools_.stores.bus->Publish({tools_.options.instance, bus::BatchCancelledEvent{cancelled}}));
  base::LogUnlessOk(base::kWarning, "not all workers learn of a cancellation", told,
                    {{"batch", cancelled}});
  RefuseContent(cancelled);
}

void BatchScheduler::RefuseContent(uint64_t cancelled) {
  if (tools_.content == nullptr) return;
  tools_.content->Refuse(cancelled,
                         absl::CancelledError(absl::StrCat("batch ", cancelled, " is cancelled")));
}

absl::StatusOr<int> BatchScheduler::Cancel(uint64_t batch, const std::string& reason,
                                           const std::vector<std::string>& workers,
                                           absl::Duration patience) {
  return cancel_acks_.Collect(batch, workers, patience, [&] { return Cancel(batch, reason); });
}

absl::Status BatchScheduler::Cancel(uint64_t batch, const std::string& reason) {
  // Recorded first: workers and the upload act only on what is decided.
  MUSTER_RETURN_IF_ERROR(RecordCancel(batch, base::Printable(reason, kMaxKeptReasonBytes)));
  PublishCancellation(batch);
  Advance(batch);
  return absl::OkStatus();
}

// A batch ends once: by its receipt, or by a cancellation. An open batch cannot have a receipt, so
// the ledger decides. The receipt of a sealed one may be there although the ledger does not know it
// yet, so the report decides, in the transaction that would issue the receipt. If this process dies
// before the ledger has followed, the batch's next step finds the decision in the report.
absl::Status BatchScheduler::RecordCancel(uint64_t batch, const std::string& reason) {
  ledger::BatchLedger* const ledger = tools_.stores.ledger;
  const absl::Time now = tools_.stores.clock->Now();
  const absl::Status cancelled = ledger->CancelIfOpen(batch, now, reason);
  if (!absl::IsFailedPrecondition(cancelled)) return cancelled;
  MUSTER_ASSIGN_OR_RETURN(const ledger::Batch recorded, ledger->Get(batch));
  if (recorded.state == ledger::BatchState::kComplete) return cancelled;
  const absl::Status decided =
      tools_.report_client->CancelBatch(batch, {now, reason, recorded.owner});
  if (absl::IsUnimplemented(decided)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "batch ", batch, " is sealed, and the controller is an older one, which cannot ",
        "say whether it is complete: upgrade the controller, then cancel"));
  }
  if (absl::IsAlreadyExists(decided)) {
    // The batch's own next step ends it: workers must not be told of a cancellation.
    Advance(batch);
    return absl::FailedPreconditionError(decided.message());
  }
  if (base::IsTransient(decided)) {
    return absl::UnavailableError(absl::StrCat(
        "batch ", batch, " is sealed, and the controller, which may have completed it, does not ",
        "answer: it is not known to be cancelled, try again (", decided.message(), ")"));
  }
  MUSTER_RETURN_IF_ERROR(decided);
  return ledger->Cancel(batch, now, reason);
}

absl::Status BatchScheduler::CancelRefused(uint64_t batch, const absl::Status& why) {
  base::Log(base::kError, "a batch is cancelled: its content is not what the job reads",
            {{"batch", batch}, {"why", why.ToString()}});
  tools_.content->Refuse(batch, why);
  return Cancel(batch, std::string(why.message()));
}

}  // namespace muster::initiator::batch
