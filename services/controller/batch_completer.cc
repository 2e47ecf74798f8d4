// SPDX-License-Identifier: Apache-2.0
#include "services/controller/batch_completer.h"

#include <optional>
#include <utility>

#include "muster/base/failpoint.h"
#include "muster/base/log.h"
#include "muster/base/status.h"
#include "muster/queue/queue_store.h"

namespace muster::controller {
namespace {

report::BatchFacts FactsOf(const ledger::Batch& batch, const queue::Traits& traits) {
  report::BatchFacts facts;
  facts.batch = batch.number;
  facts.job = batch.job;
  facts.job_revision = batch.job_revision;
  facts.handler_version = batch.handler_version;
  facts.items = batch.items;
  facts.transactions = batch.transactions;
  facts.created = batch.created;
  facts.ack_survives = traits.ack_survives == queue::Survives::kPower
                           ? report::AckSurvives::kPower
                           : report::AckSurvives::kProcess;
  return facts;
}

bool HasAll(const report::Progress& progress, const ledger::Batch& batch) {
  return static_cast<uint64_t>(progress.items()) >= batch.items;
}

}  // namespace

absl::StatusOr<report::Progress> BatchCompleter::GetProgress(uint64_t batch) {
  return retry_.Run(stop_, [&](const base::RetryAttempt&) -> absl::StatusOr<report::Progress> {
    MUSTER_ASSIGN_OR_RETURN(const auto reader, deps_.report->Read());
    return reader->GetProgress(batch);
  });
}

absl::Status BatchCompleter::CompleteIfDone(uint64_t batch) {
  const absl::StatusOr<report::Progress> progress = GetProgress(batch);
  // The report has lost the batch: it is checked when its initiator has registered it again.
  if (absl::IsNotFound(progress.status())) return absl::OkStatus();
  MUSTER_RETURN_IF_ERROR(progress.status());
  const absl::Status finished = Finish(*progress, nullptr);
  if (base::IsTransient(finished)) {
    base::Log(base::kWarning, "whether a batch is complete will be asked again",
              {{"batch", batch}, {"why", finished.ToString()}});
  }
  return finished;
}

absl::StatusOr<ledger::BatchView> BatchCompleter::FindForFinish(uint64_t batch) {
  // Only where a caller waits, and the batch is too short to change meanwhile.
  std::optional<ledger::BatchView> sealed = ledger_cache_->Sealed(batch);
  if (sealed.has_value() && sealed->wants_outcome) return *std::move(sealed);
  ledger::BatchView view;
  absl::StatusOr<ledger::Batch> found = deps_.ledger->Get(batch);
  MUSTER_RETURN_IF_ERROR(SetApart(batch, found.status()));
  view.batch = *std::move(found);
  return view;
}

absl::Status BatchCompleter::Finish(const report::Progress& progress,
                                    const OutcomeInHand& outcome_in_hand) {
  if (ledger_cache_->LacksItems(progress.batch, static_cast<uint64_t>(progress.items()))) {
    return absl::OkStatus();
  }
  MUSTER_ASSIGN_OR_RETURN(const ledger::BatchView view, FindForFinish(progress.batch));
  const ledger::Batch& batch = view.batch;
  const bool was_complete = batch.state == ledger::BatchState::kComplete;
  if (!HasAll(progress, batch) || (!was_complete && batch.state != ledger::BatchState::kSealed)) {
    return absl::OkStatus();
  }
  if (!view.wants_outcome) {  // else LedgerCache has checked its owner
    const absl::StatusOr<report::Progress> standing = GetProgress(progress.batch);
    if (absl::IsNotFound(standing.status())) return absl::OkStatus();  // deleted meanwhile
    MUSTER_RETURN_IF_ERROR(standing.status());
    MUSTER_RETURN_IF_ERROR(CheckOwner(batch, *standing));
    // What came was a late copy: it changes nothing that the receipt proves, and to make that anew
    // would read all rows of the batch.
    if (outcome_in_hand != nullptr && was_complete && standing->is_complete()) {
      if (events_->on_complete) events_->on_complete(progress.batch);
      return absl::OkStatus();
    }
  }
  const report::BatchFacts facts = FactsOf(batch, deps_.queues->traits());
  const auto issue = [&](const base::RetryAttempt&) { return deps_.report->Complete(facts); };
  const absl::Status issued = retry_.Run(stop_, issue).status();
  if (absl::IsNotFound(issued)) return absl::OkStatus();  // deleted meanwhile
  if (absl::IsFailedPrecondition(issued)) {
    // A redrive may have reopened items since `progress` was read: they will be counted again
    // later. Or the batch was cancelled, which its ledger will know soon.
    const absl::StatusOr<report::Progress> now = GetProgress(progress.batch);
    if (absl::IsNotFound(now.status())) return absl::OkStatus();
    MUSTER_RETURN_IF_ERROR(now.status());
    const bool is_at_fault = HasAll(*now, batch) && !now->cancelled.has_value();
    return is_at_fault ? SetApart(progress.batch, issued) : absl::OkStatus();
  }
  MUSTER_RETURN_IF_ERROR(issued);
  MUSTER_FAILPOINT("controller.after_receipt");
  if (!was_complete) {
    const absl::Status marked = MarkComplete(view, outcome_in_hand);
    if (absl::IsFailedPrecondition(marked)) return absl::OkStatus();  // cancelled meanwhile
    MUSTER_RETURN_IF_ERROR(SetApart(progress.batch, marked));
    MUSTER_FAILPOINT("controller.after_completion");
  }
  if (events_->on_complete) events_->on_complete(progress.batch);
  return absl::OkStatus();
}

absl::Status BatchCompleter::MarkComplete(const ledger::BatchView& view,
                                          const OutcomeInHand& outcome_in_hand) {
  const uint64_t batch = view.batch.number;
  std::optional<ledger::BatchOutcome> outcome;
  if (view.wants_outcome && outcome_in_hand != nullptr) outcome = outcome_in_hand(view.batch);
  const auto mark = [&](const base::RetryAttempt&) {
    const absl::Time now = deps_.clock->Now();
    return outcome.has_value() ? deps_.ledger->MarkCompleteAndTell(batch, now, *outcome)
                               : deps_.ledger->MarkComplete(batch, now);
  };
  // An initiator that died since the view was read must not hold up the batches of the others: it
  // asks again when it is back.
  const absl::Status marked = view.wants_outcome ? mark({}) : retry_.Run(stop_, mark);
  if (marked.ok()) {
    ledger_cache_->Forget(batch);
  } else {
    ledger_cache_->ForgetSealed(batch);
  }
  return marked;
}

}  // namespace muster::controller
