// SPDX-License-Identifier: Apache-2.0
#include "services/controller/batch_completer.h"

#include <optional>
#include <utility>

#include "muster/base/failpoint.h"
#include "muster/base/in_parallel.h"
#include "muster/base/log.h"
#include "muster/base/status.h"
#include "muster/queue/queue_store.h"

namespace muster::controller {
namespace {

// A batch waits for its initiator, which writes the marks of several in one sync.
constexpr size_t kCompletionsAtATime = 8;

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

absl::StatusOr<std::map<uint64_t, absl::Status>> BatchCompleter::CompleteDone(
    const std::set<uint64_t>& batches) {
  std::vector<report::Progress> progresses;
  std::map<uint64_t, absl::Status> unread;
  for (const uint64_t batch : batches) {
    absl::StatusOr<report::Progress> progress = GetProgress(batch);
    // The report has lost the batch: it is checked when its initiator has registered it again.
    if (absl::IsNotFound(progress.status())) continue;
    if (base::IsTransient(progress.status())) {
      unread[batch] = progress.status();
      continue;
    }
    MUSTER_RETURN_IF_ERROR(progress.status());
    progresses.push_back(*std::move(progress));
  }
  MUSTER_ASSIGN_OR_RETURN(auto troubles, FinishAll(progresses, nullptr));
  troubles.merge(unread);
  for (const auto& [batch, why] : troubles) {
    base::Log(base::kWarning, "whether a batch is complete will be asked again",
              {{"batch", batch}, {"why", why.ToString()}});
  }
  return troubles;
}

absl::StatusOr<std::map<uint64_t, absl::Status>> BatchCompleter::FinishCounted(
    absl::Span<const report::Progress> progresses, const OutcomeInHand& outcome_in_hand) {
  for (const report::Progress& progress : progresses) ledger_cache_->Note(progress);
  return FinishAll(progresses, outcome_in_hand);
}

absl::StatusOr<std::map<uint64_t, absl::Status>> BatchCompleter::FinishAll(
    absl::Span<const report::Progress> progresses, const OutcomeInHand& outcome_in_hand) {
  std::vector<Finishing> batches(progresses.size());
  for (size_t i = 0; i < batches.size(); ++i) {
    const uint64_t number = progresses[i].batch;
    batches[i].progress = &progresses[i];
    batches[i].lacks_items =
        ledger_cache_->LacksItems(number, static_cast<uint64_t>(progresses[i].items()));
    batches[i].sealed = ledger_cache_->Sealed(number);
  }
  base::InParallel(batches.size(), kCompletionsAtATime, [&](size_t i) {
    if (outcome_in_hand != nullptr && events_->on_progress) events_->on_progress(progresses[i]);
    if (!batches[i].lacks_items) batches[i].end = Finish(&batches[i], outcome_in_hand);
  });
  std::map<uint64_t, absl::Status> troubles;
  absl::Status fault;
  for (const Finishing& batch : batches) {
    const uint64_t number = batch.progress->batch;
    if (batch.marked.has_value()) {
      if (batch.marked->ok()) {
        ledger_cache_->Forget(number);
      } else {
        ledger_cache_->ForgetSealed(number);
      }
    }
    if (batch.complete && events_->on_complete) events_->on_complete(number);
    if (batch.end.ok()) continue;
    if (base::IsTransient(batch.end)) {
      troubles[number] = batch.end;
    } else {
      fault.Update(batch.end);
    }
  }
  MUSTER_RETURN_IF_ERROR(fault);
  return troubles;
}

absl::StatusOr<ledger::BatchView> BatchCompleter::FindForFinish(const Finishing& batch) {
  // Only where a caller waits, and the batch is too short to change meanwhile.
  if (batch.sealed.has_value() && batch.sealed->wants_outcome) return *batch.sealed;
  ledger::BatchView view;
  absl::StatusOr<ledger::Batch> found = deps_.ledger->Get(batch.progress->batch);
  MUSTER_RETURN_IF_ERROR(SetApart(batch.progress->batch, found.status()));
  view.batch = *std::move(found);
  return view;
}

absl::Status BatchCompleter::Finish(Finishing* finishing, const OutcomeInHand& outcome_in_hand) {
  const report::Progress& progress = *finishing->progress;
  MUSTER_ASSIGN_OR_RETURN(const ledger::BatchView view, FindForFinish(*finishing));
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
      finishing->complete = true;
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
    finishing->marked = MarkComplete(view, outcome_in_hand);
    if (absl::IsFailedPrecondition(*finishing->marked)) {
      return absl::OkStatus();  // cancelled meanwhile
    }
    MUSTER_RETURN_IF_ERROR(SetApart(progress.batch, *finishing->marked));
    MUSTER_FAILPOINT("controller.after_completion");
  }
  finishing->complete = true;
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
  return view.wants_outcome ? mark({}) : retry_.Run(stop_, mark);
}

}  // namespace muster::controller
