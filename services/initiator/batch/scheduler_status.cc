// SPDX-License-Identifier: Apache-2.0

// What the scheduler says of a batch: from the ledger, its own entry, and the report.
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "muster/base/status.h"
#include "muster/base/text.h"
#include "muster/item/complete_batch.h"
#include "muster/schedule/occurrence.h"
#include "services/initiator/batch/scheduler.h"
#include "services/initiator/batch/source.h"

namespace muster::initiator::batch {

// The share of the content that has arrived so far; the full size is unknown until then.
double BatchScheduler::SplitShare(const ledger::Batch& batch) {
  if (batch.state != ledger::BatchState::kOpen) return 1;
  if (!tools_.content->Stores(batch)) return 0;
  const uint64_t arrived =
      tools_.content->DurableBytes(batch.number).value_or(batch.content.size());
  if (arrived == 0) return 0;
  return static_cast<double>(batch.source_bytes) / static_cast<double>(arrived);
}

// A client that was interrupted does not resume by itself, and the batch would wait for ever: the
// error tells the user what to do.
absl::Status BatchScheduler::CheckSender(const ledger::Batch& batch) {
  if (batch.state != ledger::BatchState::kOpen || !batch.content.empty()) return absl::OkStatus();
  if (!tools_.content->Stores(batch)) return absl::OkStatus();
  {
    base::MutexLock lock(&mu_);
    const auto entry = entries_.find(batch.number);
    if (entry == entries_.end() || entry->second.senders > 0) return absl::OkStatus();
    const absl::Duration alone = tools_.stores.clock->Monotonic() - entry->second.left_at;
    if (alone < options_.sender_grace) return absl::OkStatus();
  }
  if (tools_.content->IsSealed(batch.number)) return absl::OkStatus();
  // muster sends these itself, and takes their ids of no client.
  if (absl::StartsWith(batch.request_id, kRetryRequest)) {
    return absl::UnavailableError(
        absl::StrCat("the rest of its records is missing: retry once more what failed of the batch "
                     "that they are of, or `muster batch cancel ",
                     batch.number, "`"));
  }
  if (muster::schedule::IsScheduleRequest(batch.request_id)) {
    return absl::UnavailableError(
        absl::StrCat("the rest of its content is missing: its schedule tries again, or "
                     "`muster batch cancel ",
                     batch.number, "`"));
  }
  const std::string tenant =
      batch.tenant.empty() ? "" : absl::StrCat(" --tenant ", base::ShellQuoted(batch.tenant));
  return absl::UnavailableError(
      absl::StrCat("the rest of its upload is missing: submit it again with --request-id ",
                   base::ShellQuoted(batch.request_id), tenant, ", or `muster batch cancel ",
                   batch.number, "`"));
}

bool BatchScheduler::StatusHere(BatchStatus* batch_status) {
  const ledger::Batch& batch = batch_status->batch;
  batch_status->split_share = SplitShare(batch);
  const absl::Status unsent = CheckSender(batch);
  // A batch that has ended waits for nothing, even if its blobs cannot be deleted yet.
  const bool over = IsOver(batch.state);
  if (over) batch_status->removal_problem = remover_.ProblemOf(batch.number);
  base::MutexLock lock(&mu_);
  if (const auto entry = entries_.find(batch.number); entry != entries_.end()) {
    batch_status->split = entry->second.work->split_progress();
    if (!over) {
      batch_status->problem = entry->second.problem;
      batch_status->problem.Update(unsent);
      if (entry->second.is_held_back) {
        batch_status->held_back_items = batch.items - batch.enqueued_items;
      }
    }
    if (!over && entry->second.counted.has_value()) {
      batch_status->counted = *entry->second.counted;
      return true;
    }
  }
  // While no item is put, none is counted: answer without asking the report, so that a submission
  // does not wait for it. What the report has under a disowned number is not this batch's.
  return batch.disowned || (!over && batch.enqueued_items == 0);
}

void BatchScheduler::CheckCounted(BatchStatus* batch_status) {
  const absl::Status wrong = item::CheckCounted(batch_status->batch, batch_status->counted);
  if (wrong.ok()) return;
  // A redrive, or a removal, may have begun since the batch was read.
  if (IsComplete(batch_status->batch.number)) batch_status->problem = wrong;
}

bool BatchScheduler::IsComplete(uint64_t number) {
  const absl::StatusOr<ledger::Batch> batch = tools_.stores.ledger->Get(number);
  return batch.ok() && batch->state == ledger::BatchState::kComplete;
}

absl::StatusOr<BatchStatus> BatchScheduler::Get(uint64_t number) {
  BatchStatus batch_status;
  MUSTER_ASSIGN_OR_RETURN(batch_status.batch, tools_.stores.ledger->Get(number));
  // Its submitter was not told its number yet, and it may be withdrawn without a trace.
  if (batch_status.batch.undecided) {
    return absl::NotFoundError(absl::StrCat("there is no batch ", number));
  }
  if (StatusHere(&batch_status)) return batch_status;
  absl::StatusOr<report::Progress> counted = tools_.report_client->GetProgress(number);
  if (counted.ok()) {
    batch_status.counted = *std::move(counted);
    CheckCounted(&batch_status);
  } else if (absl::IsNotFound(counted.status()) &&
             batch_status.batch.state == ledger::BatchState::kComplete) {
    // It may have been deleted since it was read.
    if (!IsComplete(number)) {
      return absl::UnavailableError(absl::StrCat("batch ", number, " changes at this moment"));
    }
    return base::Annotate(item::CheckCounted(batch_status.batch, {}),
                          absl::StrCat("batch ", number));
  } else if (!absl::IsNotFound(counted.status()) && IsOver(batch_status.batch.state)) {
    return counted.status();
  }
  return batch_status;
}

absl::StatusOr<std::vector<BatchStatus>> BatchScheduler::StatusesOf(
    std::vector<ledger::Batch> batches) {
  std::vector<BatchStatus> statuses;
  std::vector<uint64_t> to_ask;
  for (ledger::Batch& batch : batches) {
    BatchStatus& batch_status = statuses.emplace_back();
    batch_status.batch = std::move(batch);
    if (StatusHere(&batch_status)) continue;
    to_ask.push_back(batch_status.batch.number);
  }
  if (to_ask.empty()) return statuses;
  auto counted = tools_.report_client->ListProgress(to_ask);
  const std::set<uint64_t> asked(to_ask.begin(), to_ask.end());
  for (BatchStatus& batch_status : statuses) {
    if (!asked.contains(batch_status.batch.number)) continue;
    if (!counted.ok()) {  // what the ledger has of a batch can be shown without a controller
      batch_status.counts_problem = counted.status();
      continue;
    }
    const auto of_batch = counted->find(batch_status.batch.number);
    if (of_batch != counted->end()) {
      batch_status.counted = std::move(of_batch->second);
      CheckCounted(&batch_status);
    } else if (batch_status.batch.state == ledger::BatchState::kComplete) {
      // One such batch must not hide the others.
      batch_status.problem = item::CheckCounted(batch_status.batch, {});
      batch_status.counts_problem = batch_status.problem;
    }
  }
  return statuses;
}

absl::StatusOr<std::vector<BatchStatus>> BatchScheduler::OpenBatches(size_t max) {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<uint64_t> open, tools_.stores.ledger->ListOpen());
  std::vector<BatchStatus> statuses;
  for (auto number = open.rbegin(); number != open.rend() && statuses.size() < max; ++number) {
    absl::StatusOr<ledger::Batch> batch = tools_.stores.ledger->Get(*number);
    // Withdrawn or ended meanwhile, or damaged: what is shown of the others is right.
    if (!batch.ok() || batch->undecided || ledger::IsOver(batch->state)) continue;
    BatchStatus& batch_status = statuses.emplace_back();
    batch_status.batch = *std::move(batch);
    StatusHere(&batch_status);
  }
  return statuses;
}

absl::StatusOr<ledger::BatchPage> BatchScheduler::FindRemovalProblems(
    const item::BatchFilter& filter, uint64_t below, size_t max) {
  const absl::Time now = tools_.stores.clock->Now();
  const std::vector<uint64_t> failing = remover_.Problems(below, max);
  ledger::BatchPage page;
  if (failing.size() == max) page.next_below = failing.back();
  for (const uint64_t number : failing) {
    absl::StatusOr<ledger::Batch> batch = tools_.stores.ledger->Get(number);
    // Deleted meanwhile, or damaged: what is shown of the others is right.
    if (batch.ok() && filter.Matches(*batch, now)) page.batches.push_back(*std::move(batch));
  }
  return page;
}

absl::StatusOr<bool> BatchScheduler::IsCancelled(uint64_t number) {
  MUSTER_ASSIGN_OR_RETURN(const ledger::Batch batch, tools_.stores.ledger->Get(number));
  return batch.state == ledger::BatchState::kCancelled;
}

}  // namespace muster::initiator::batch
