// SPDX-License-Identifier: Apache-2.0

// How an engine looks after a batch whose items are in the queue: it suspends the batch while no
// worker can work on it, and puts again what the queue has lost.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "muster/base/log.h"
#include "muster/base/retry.h"
#include "muster/base/status.h"
#include "services/initiator/batch/engine.h"

namespace muster::initiator::batch {
namespace {

// A refill is fruitless if no further item is counted until the next one. After so many in a row
// the queue cannot be trusted: the batch has a problem, and the pauses before the next refill have
// grown.
constexpr int kMaxFruitlessRefills = 5;
constexpr absl::Duration kMinRefillPause = absl::Seconds(1);
constexpr absl::Duration kMaxRefillPause = absl::Minutes(2);

// Longer than a restart of the workers that fit a batch: to take its items out of the queue and put
// them again costs more than to give them back for so long.
constexpr absl::Duration kSuspendAfter = absl::Minutes(1);

}  // namespace

absl::StatusOr<std::vector<uint64_t>> BatchEngine::FindLost(const ledger::Batch& batch) {
  absl::StatusOr<std::vector<uint64_t>> lost = lost_items_->FindLost(batch);
  if (!absl::IsNotFound(lost.status())) return lost;
  MUSTER_RETURN_IF_ERROR(RestoreJob(batch));
  MUSTER_RETURN_IF_ERROR(queues_->EnsureAnew(*job_));
  return lost_items_->FindLost(batch);
}

absl::StatusOr<std::vector<ledger::PutMark>> BatchEngine::MarkFromNowOn(
    const ledger::Batch& batch) {
  absl::StatusOr<std::vector<ledger::PutMark>> marks = lost_items_->MarksOfNow();
  if (absl::IsNotFound(marks.status())) {
    MUSTER_RETURN_IF_ERROR(RestoreJob(batch));
    MUSTER_RETURN_IF_ERROR(queues_->EnsureAnew(*job_));
    marks = lost_items_->MarksOfNow();
  }
  MUSTER_RETURN_IF_ERROR(marks.status());
  MUSTER_RETURN_IF_ERROR(tools_.stores.ledger->MarkEnqueued(number_, batch.enqueued_items, *marks));
  return marks;
}

absl::Status BatchEngine::CheckSuspension(const ledger::Batch& batch) {
  if (tools_.suspended == nullptr) return absl::OkStatus();
  if (batch.handler_version.empty() || !tools_.no_worker_fits(batch)) {
    misfit_since_ = absl::InfiniteDuration();
    return EndSuspension();
  }
  const absl::Duration now = tools_.stores.clock->Monotonic();
  misfit_since_ = std::min(misfit_since_, now);
  if (!tools_.suspended->Contains(number_)) {
    if (now - misfit_since_ < kSuspendAfter) return absl::OkStatus();
    MUSTER_RETURN_IF_ERROR(tools_.suspended->Add(number_));
    base::Log(base::kWarning, "the items of a batch that no worker fits leave the queue",
              {{"batch", number_}, {"handler_version", batch.handler_version}});
  }
  return absl::UnavailableError(absl::StrCat("no processor has handler version '",
                                             batch.handler_version, "' of job '", batch.job,
                                             "': its items wait in the ledger until one has"));
}

absl::Status BatchEngine::CheckItemContent() {
  if (tools_.damaged == nullptr) return absl::OkStatus();
  const std::optional<content::ItemReference> item = tools_.damaged->Find(number_);
  if (!item.has_value()) return absl::OkStatus();
  std::string slice;
  const absl::Status read = tools_.item_content->Read(*item, &slice);
  // InvalidArgument: it was no item of this batch.
  if (read.ok() || absl::IsInvalidArgument(read)) {
    tools_.damaged->Clear(number_);
    return absl::OkStatus();
  }
  if (!absl::IsDataLoss(read)) return read;
  // Its items leave the queue instead of going from one worker to the next.
  if (tools_.suspended != nullptr && !tools_.suspended->Contains(number_)) {
    MUSTER_RETURN_IF_ERROR(tools_.suspended->Add(number_));
  }
  return absl::DataLossError(
      absl::StrCat("the content of batch ", number_, " is damaged: ", read.message(), ". Put ",
                   tools_.content == nullptr ? "it" : tools_.content->PathOf(number_),
                   " back from a backup, or cancel the batch and submit it again"));
}

absl::Status BatchEngine::EndSuspension() {
  if (tools_.suspended == nullptr || !tools_.suspended->Contains(number_)) return absl::OkStatus();
  return tools_.suspended->Remove(number_);
}

absl::Status BatchEngine::CheckWorkable(const ledger::Batch& batch) {
  MUSTER_RETURN_IF_ERROR(RestoreJobIfDue(batch));
  MUSTER_RETURN_IF_ERROR(CheckItemContent());
  return CheckSuspension(batch);
}

absl::Status BatchEngine::RefillWhatIsLost(const ledger::Batch& batch,
                                           const report::Progress& counted) {
  if (static_cast<uint64_t>(counted.items()) >= batch.items) {
    // An earlier request may have been lost; and the answer says why there is no receipt yet.
    return tools_.report_client->CheckCompletion(number_);
  }
  MUSTER_RETURN_IF_ERROR(CheckWorkable(batch));
  ledger::Batch marked = batch;
  if (marked.put_marks.size() != lost_items_->partitions()) {
    MUSTER_ASSIGN_OR_RETURN(marked.put_marks, MarkFromNowOn(batch));
  }
  MUSTER_ASSIGN_OR_RETURN(const std::vector<uint64_t> lost, FindLost(marked));
  return lost.empty() ? absl::OkStatus() : Refill(marked, lost, counted.items());
}

absl::Status BatchEngine::Refill(const ledger::Batch& batch, const std::vector<uint64_t>& lost,
                                 int64_t counted) {
  if (counted != counted_at_refill_) {
    fruitless_refills_ = 0;
    refill_at_ = -absl::InfiniteDuration();
  }
  const absl::Status vanish = absl::DataLossError(
      absl::StrCat("items of batch ", number_, " vanish from the queue: ", lost.size(),
                   " are missing after ", fruitless_refills_, " times of putting them again"));
  const bool has_problem = fruitless_refills_ >= kMaxFruitlessRefills;
  const absl::Duration now = tools_.stores.clock->Monotonic();
  if (now >= refill_at_) {
    MUSTER_RETURN_IF_ERROR(RestoreJob(batch));
    MUSTER_RETURN_IF_ERROR(enqueuer_->Refill(number_, lost));
    counted_at_refill_ = counted;
    refill_at_ =
        now + base::ExponentialBackoff(++fruitless_refills_, kMinRefillPause, kMaxRefillPause);
  }
  return has_problem ? vanish : absl::OkStatus();
}

}  // namespace muster::initiator::batch
