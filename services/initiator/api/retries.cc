// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/api/retries.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "muster/base/failpoint.h"
#include "muster/base/log.h"
#include "muster/base/status.h"
#include "muster/input/csv_record.h"
#include "muster/item/labels.h"
#include "muster/item/queue_names.h"
#include "muster/item/redrive.h"
#include "muster/job/job_file.h"
#include "muster/rpc/status.h"
#include "services/initiator/api/retried_content.h"
#include "services/initiator/submit/content_writer.h"

namespace muster::initiator::api {
namespace {

// Transactions that are read between two looks at the caller.
constexpr size_t kPage = 1000;

// Dead letters that are searched for a line which was not rejected.
constexpr size_t kMaxSearchedItems = 1000;

absl::StatusOr<report::RetrySelection> ParseSelection(const v1::RetryRejectionsRequest& request) {
  const int ways = (request.lines().empty() ? 0 : 1) + (request.items().empty() ? 0 : 1) +
                   (request.all() ? 1 : 0);
  if (ways != 1) {
    return rpc::BadField("lines", "must be there, or else items, or else all must be set");
  }
  for (const auto& [field, size] :
       {std::pair("lines", request.lines_size()), std::pair("items", request.items_size())}) {
    if (static_cast<size_t>(size) <= report::kMaxNamedLines) continue;
    return rpc::BadField(field, absl::StrCat("must be at most ", report::kMaxNamedLines));
  }
  if (request.rejections_only() && !request.all()) {
    return rpc::BadField("rejections_only", "must be unset when lines or items are named");
  }
  report::RetrySelection which;
  which.lines.assign(request.lines().begin(), request.lines().end());
  which.items.assign(request.items().begin(), request.items().end());
  which.rejections_only = request.rejections_only();
  return which;
}

// Its records could mean something else by now.
absl::Status CheckSameInput(const ledger::Batch& batch, const job::JobDefinition& now) {
  MUSTER_ASSIGN_OR_RETURN(const job::JobDefinition then,
                          job::ParseJob(batch.job_definition, batch.job));
  if (then.input.kind == now.input.kind && then.input.header == now.input.header &&
      then.input.delimiter == now.input.delimiter && then.input.quotes == now.input.quotes &&
      then.input.multiline == now.input.multiline) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "job '", batch.job, "' reads its input in another way than when batch ", batch.number,
      " was submitted: write what failed of it into a file, and submit that"));
}

v1::SubmitHeader HeaderOf(const ledger::Batch& batch, const std::string& request_id) {
  v1::SubmitHeader header;
  header.set_job(batch.job);
  header.set_request_id(request_id);
  header.set_tenant(batch.tenant);
  header.mutable_labels()->insert(batch.labels.begin(), batch.labels.end());
  header.mutable_labels()->erase(item::kCallLabel);  // no caller waits for this one
  return header;
}

// Not a name that muster gives any other submission.
std::string RequestIdOf(uint64_t batch, int64_t retry) {
  return absl::StrCat(batch::kRetryRequest, batch, ":", retry);
}

// Whether the batch needs no more content. Also one that was cancelled: a part of it may be
// counted.
bool HasEnded(const ledger::Batch& batch) {
  return batch.state != ledger::BatchState::kOpen || batch.sealed_content.has_value();
}

int64_t LineEndsIn(absl::string_view text) { return std::count(text.begin(), text.end(), '\n'); }

}  // namespace

absl::StatusOr<v1::RetryRejectionsResponse> Retries::Retry(
    const v1::RetryRejectionsRequest& request, const std::function<bool()>& is_cancelled) {
  MUSTER_ASSIGN_OR_RETURN(const report::RetrySelection which, ParseSelection(request));
  {
    base::MutexLock lock(&mu_);
    if (calls_ >= kMaxRetryCalls) {
      return absl::UnavailableError(
          absl::StrCat(kMaxRetryCalls, " calls retry already; ask again"));
    }
    ++calls_;
  }
  const absl::Cleanup leave = [this] {
    base::MutexLock lock(&mu_);
    --calls_;
  };
  const base::KeyedMutex::Lock lock(&batches_, absl::StrCat(request.batch()));
  return RetryHeld(request.batch(), which, is_cancelled);
}

// Says which dead letter has a line that was not rejected.
absl::Status Retries::NotRejected(const absl::Status& refused, const std::vector<int64_t>& lines,
                                  RetriedContent* content) {
  if (lines.empty() || !absl::IsNotFound(refused)) return refused;
  const uint64_t batch = content->batch().number;
  const auto dead = deps_.report_client->DeadLetteredItems(batch, 0, kMaxSearchedItems);
  if (!dead.ok()) return refused;
  for (const uint64_t item : *dead) {
    int64_t line = 0;
    const absl::Status read = content->ForEachOf(item, [&](const batch::SubmittedRecord& record) {
      if (std::find(lines.begin(), lines.end(), record.line) != lines.end()) line = record.line;
      return absl::OkStatus();
    });
    if (!read.ok() || line == 0) continue;
    return absl::NotFoundError(
        absl::StrCat("line ", line, " of batch ", batch, " is in item ", item,
                     ", which was given up as a whole: `muster batch retry ", batch, " --item ",
                     item, "` retries it, with all of its transactions"));
  }
  return refused;
}

absl::StatusOr<v1::RetryRejectionsResponse> Retries::RetryHeld(
    uint64_t batch, const report::RetrySelection& which,
    const std::function<bool()>& is_cancelled) {
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<RetriedContent> content,
                          RetriedContent::Open(batch, deps_.ledger, deps_.open_content));
  MUSTER_ASSIGN_OR_RETURN(const job::JobDefinition job,
                          deps_.jobs->GetDefinition(content->batch().job));
  MUSTER_RETURN_IF_ERROR(CheckSameInput(content->batch(), job));
  absl::StatusOr<report::RetryClaims> claimed =
      deps_.report_client->ClaimRejections(batch, which, report::kMaxClaimedRejections);
  if (!claimed.ok()) return NotRejected(claimed.status(), which.lines, content.get());
  MUSTER_FAILPOINT("initiator.after_retry_claimed");
  v1::RetryRejectionsResponse response;
  response.set_more(claimed->more);
  for (report::RetryClaim& claim : claimed->claims) {
    const bool is_new = claim.retried_in == 0;
    if (is_new) {
      MUSTER_ASSIGN_OR_RETURN(claim.retried_in, Submit(content.get(), &claim, is_cancelled));
    } else {
      // The call that told the report of it may have died before it looked.
      MUSTER_RETURN_IF_ERROR(CheckThere(claim.retried_in));
    }
    if (claim.retried_in == 0) continue;
    v1::RetriedBatch* const retry = response.add_retries();
    retry->set_batch(claim.retried_in);
    retry->set_transactions(claim.transactions);
    retry->set_is_new(is_new);
  }
  // Also if there are more: the next call would come to the same ones.
  if (response.retries().empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("nothing of batch ", batch,
                     " can be retried: the records are longer than a record may be, open a quote "
                     "that is never closed, or cannot be read any more"));
  }
  return response;
}

// Submissions::Begin would hold it against the job as it is now, which may have changed since.
absl::StatusOr<std::optional<ledger::Batch>> Retries::FindBegun(const std::string& tenant,
                                                                const std::string& request_id) {
  absl::StatusOr<ledger::Batch> known = deps_.ledger->FindByRequest(tenant, request_id);
  if (absl::IsNotFound(known.status())) return std::nullopt;
  MUSTER_RETURN_IF_ERROR(known.status());
  if (known->undecided) return std::nullopt;
  MUSTER_RETURN_IF_ERROR(deps_.ledger->Sync());
  return *std::move(known);
}

// Submits the transactions of one claim, page by page, in the order of item and line.
class Retries::Attempt {
 public:
  Attempt(const Dependencies& deps, RetriedContent* content, report::RetryClaim* claim)
      : deps_(deps),
        content_(content),
        claim_(claim),
        request_id_(RequestIdOf(content->batch().number, claim->retry)),
        writer_({deps.submissions, deps.scheduler, deps.uploads, deps.ledger}) {}

  // Dead letters that the batch has.
  const std::vector<uint64_t>& items() const { return items_; }

  // Cancels the batch that was begun where no later call could go on with it.
  absl::Status Failed(const absl::Status& why) {
    const bool is_lasting =
        absl::IsNotFound(why) || absl::IsDataLoss(why) || absl::IsFailedPrecondition(why);
    if (is_lasting && writer_.has_begun()) MUSTER_RETURN_IF_ERROR(writer_.GiveUp(why));
    return why;
  }

  // As Retries::Submit, but the report is not told yet.
  absl::StatusOr<uint64_t> Run(std::optional<ledger::Batch> begun,
                               const std::function<bool()>& is_cancelled) {
    begun_ = std::move(begun);
    was_submitted_ = begun_.has_value() && HasEnded(*begun_);
    MUSTER_ASSIGN_OR_RETURN(header_, content_->Header());
    next_line_ = LineEndsIn(header_) + 1;
    report::RejectionPosition after = report::kBeforeAllClaimed;
    for (;;) {
      if (is_cancelled && is_cancelled()) return absl::CancelledError("the caller went away");
      MUSTER_ASSIGN_OR_RETURN(
          const std::vector<report::RejectionPosition> page,
          deps_.report_client->ClaimedRejections(batch(), claim_->retry, after, kPage));
      if (page.empty()) break;
      after = page.back();
      MUSTER_RETURN_IF_ERROR(TakePage(page));
      if (claim_->transactions == 0 && !begun_.has_value()) return 0;
    }
    if (was_submitted_) return begun_->number;
    if (!writer_.has_begun()) {
      return absl::UnavailableError(
          absl::StrCat("the report has just forgotten a retry of batch ", batch(), ": ask again"));
    }
    if (claim_->transactions != placed_) {
      return absl::FailedPreconditionError(absl::StrCat(
          "the report has forgotten a part of a retry of batch ", batch(), " meanwhile"));
    }
    MUSTER_RETURN_IF_ERROR(writer_.Seal());
    return writer_.batch();
  }

 private:
  uint64_t batch() const { return content_->batch().number; }

  absl::Status TakePage(const std::vector<report::RejectionPosition>& page) {
    const auto take = [&](const report::RejectionPosition& position,
                          const std::optional<std::string>& record) {
      return record.has_value() && IsItselfAmongOthers(*record)
                 ? TakeRecord(position, *record)
                 : Place({position.item, position.line});
    };
    for (size_t begin = 0, end = 0; begin < page.size(); begin = end) {
      const bool is_item = page[begin].line == report::kWholeItem;
      while (end < page.size() && (page[end].line == report::kWholeItem) == is_item) ++end;
      if (!is_item) {
        MUSTER_RETURN_IF_ERROR(
            content_->ForEach(absl::MakeConstSpan(page).subspan(begin, end - begin), take));
        continue;
      }
      for (size_t i = begin; i < end; ++i) MUSTER_RETURN_IF_ERROR(TakeItem(page[i].item));
    }
    return RecordPlaces();
  }

  // All records of an item that was given up. One that has none, or is damaged, is freed.
  absl::Status TakeItem(uint64_t item) {
    const int64_t first = next_line_;
    const int64_t before = placed_;
    const absl::Status read =
        content_->ForEachOf(item, [&](const batch::SubmittedRecord& record) -> absl::Status {
          // A part of the item that stays given up.
          if (record.oversized || !IsItselfAmongOthers(record.bytes)) return absl::OkStatus();
          return TakeRecord({item, record.line}, record.bytes);
        });
    if (absl::IsDataLoss(read) && placed_ == before) {
      base::LogUnlessOk(base::kWarning, "a dead letter cannot be retried", read,
                        {{"batch", batch()}, {"item", item}});
    } else {
      MUSTER_RETURN_IF_ERROR(read);
    }
    if (placed_ > before) items_.push_back(item);
    return Place({item, report::kWholeItem, placed_ > before ? first : 0});
  }

  absl::Status Place(const report::RetriedTransaction& transaction) {
    places_.push_back(transaction);
    return places_.size() < report::kMaxReportItems ? absl::OkStatus() : RecordPlaces();
  }

  absl::Status RecordPlaces() {
    MUSTER_ASSIGN_OR_RETURN(claim_->transactions,
                            deps_.report_client->RecordRetry(batch(), claim_->retry, places_, 0));
    places_.clear();
    return absl::OkStatus();
  }

  // With other neighbours, a quote that is not closed would take the next record with it.
  bool IsItselfAmongOthers(absl::string_view record) const {
    return !input::HasUnclosedQuote(record, content_->format());
  }

  absl::Status TakeRecord(const report::RejectionPosition& position, absl::string_view record) {
    MUSTER_RETURN_IF_ERROR(Place({position.item, position.line, next_line_}));
    ++placed_;
    next_line_ += LineEndsIn(record) + 1;
    if (was_submitted_) return absl::OkStatus();
    if (!writer_.has_begun()) {
      if (!begun_.has_value()) {
        MUSTER_ASSIGN_OR_RETURN(begun_,
                                deps_.submissions->Begin(HeaderOf(content_->batch(), request_id_)));
      }
      MUSTER_RETURN_IF_ERROR(writer_.Begin(*begun_));
      MUSTER_RETURN_IF_ERROR(writer_.Add(header_));
    }
    MUSTER_RETURN_IF_ERROR(writer_.Add(record));
    return writer_.Add(input::LineEndBehind(record));
  }

  const Dependencies& deps_;
  RetriedContent* const content_;    // not owned
  report::RetryClaim* const claim_;  // not owned
  const std::string request_id_;
  std::optional<ledger::Batch> begun_;  // by this call or an earlier one
  bool was_submitted_ = false;          // by an earlier one, as a whole
  submit::ContentWriter writer_;
  std::string header_;
  int64_t next_line_ = 1;                           // of the new batch's content
  int64_t placed_ = 0;                              // records that it has
  std::vector<report::RetriedTransaction> places_;  // that the report was not told yet
  std::vector<uint64_t> items_;                     // dead letters that it has
};

absl::StatusOr<uint64_t> Retries::Submit(RetriedContent* content, report::RetryClaim* claim,
                                         const std::function<bool()>& is_cancelled) {
  const uint64_t of = content->batch().number;
  MUSTER_ASSIGN_OR_RETURN(std::optional<ledger::Batch> begun,
                          FindBegun(content->batch().tenant, RequestIdOf(of, claim->retry)));
  Attempt attempt(deps_, content, claim);
  const absl::StatusOr<uint64_t> submitted = attempt.Run(std::move(begun), is_cancelled);
  if (!submitted.ok()) return attempt.Failed(submitted.status());
  const uint64_t number = *submitted;
  if (number == 0) return 0;
  MUSTER_FAILPOINT("initiator.after_retry_submitted");
  // Before the report is told: after a death the next call comes here again.
  DropPoison(content->batch(), attempt.items());
  MUSTER_ASSIGN_OR_RETURN(claim->transactions,
                          deps_.report_client->RecordRetry(of, claim->retry, {}, number));
  MUSTER_RETURN_IF_ERROR(CheckThere(number));
  base::Log(base::kInfo, "retries what failed of a batch",
            {{"batch", of}, {"retried_in", number}, {"transactions", claim->transactions}});
  return number;
}

// What is left would only be refused by a redrive.
void Retries::DropPoison(const ledger::Batch& batch, const std::vector<uint64_t>& items) {
  if (items.empty() || deps_.queues == nullptr) return;
  const absl::StatusOr<job::JobDefinition> job = job::ParseJob(batch.job_definition, batch.job);
  // A held key is listed with its dead letter until it is released.
  if (!job.ok() || job->on_poison == job::OnPoison::kHold) return;
  std::set<uint64_t> left(items.begin(), items.end());
  for (const queue::QueueId& queue :
       item::InputQueues(deps_.account, batch.job, job->queue.partitions)) {
    const absl::StatusOr<int64_t> dropped =
        item::DropPoisonOf(queue, batch.number, &left, *deps_.queues);
    base::LogUnlessOk(base::kWarning, "poison of items that are retried stays", dropped.status(),
                      {{"batch", batch.number}, {"queue", queue.ToString()}});
  }
}

// The report forgets a batch before the ledger deletes it: if it had done so already, the claim
// that names the batch came too late to be freed.
absl::Status Retries::CheckThere(uint64_t batch) {
  const absl::StatusOr<ledger::Batch> there = deps_.ledger->Get(batch);
  bool is_gone = absl::IsNotFound(there.status());
  if (there.ok() && there->state == ledger::BatchState::kComplete) {
    is_gone = absl::IsNotFound(deps_.report_client->GetProgress(batch).status());
  }
  if (!is_gone) return absl::OkStatus();
  for (bool done = false; !done;) {
    MUSTER_ASSIGN_OR_RETURN(done, deps_.report_client->ForgetBatch(batch));
  }
  return absl::UnavailableError(absl::StrCat("batch ", batch, " was deleted meanwhile: ask again"));
}

}  // namespace muster::initiator::api
