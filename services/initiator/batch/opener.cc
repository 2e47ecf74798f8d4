// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/batch/opener.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/failpoint.h"
#include "muster/base/fingerprint.h"
#include "muster/base/status.h"
#include "muster/item/batch_trace.h"

namespace muster::initiator::batch {
namespace {

using ledger::Batch;
using ledger::BatchState;
using ledger::ItemBoundary;

// Items that are read from the ledger at a time.
constexpr size_t kItemsToVerify = 1024;
// An input up to this size is fingerprinted as a whole when its batch begins, so that a continued
// batch notices any change. Reading a larger input twice would cost more than it is worth.
constexpr uint64_t kMaxFingerprintedBytes = uint64_t{1} << 30;

std::string LinesOf(const ItemBoundary& item) {
  return absl::StrCat(item.transactions, " transactions from line ", item.first_line);
}

// The fingerprint of the source; nullopt: it is larger than kMaxFingerprintedBytes.
absl::StatusOr<std::optional<base::Fingerprint128>> ContentOf(const BatchSource& source,
                                                              const std::stop_token& stop) {
  if (source.size() > kMaxFingerprintedBytes) return std::nullopt;
  MUSTER_ASSIGN_OR_RETURN(const base::Fingerprint128 content,
                          source.Fingerprint(0, source.size(), stop));
  return content;
}

absl::Status Changed(const BatchSource& source, const Batch& batch, absl::string_view what) {
  return absl::FailedPreconditionError(absl::StrCat(
      source.path(), " is not the input that batch ", batch.number, " was made of: ", what,
      ". Give other content a --request-id of its own: it is counted once, however often its "
      "command is repeated. --new counts this content as a batch beside batch ",
      batch.number, ". To go on with that one, restore its input"));
}

}  // namespace

// A number may be taken if the generator's state is older than the ledger, as after a partly
// restored backup; the loop then draws the next one.
absl::Status RecordUnderNewNumber(ledger::BatchLedger* ledger, sync::UniqueIdGenerator* numbers,
                                  Batch* batch, absl::Span<const ItemBoundary> items,
                                  const std::function<absl::Status(Batch*)>& on_number) {
  absl::Status created;
  do {
    MUSTER_ASSIGN_OR_RETURN(const int64_t number, numbers->NextId());
    batch->number = static_cast<uint64_t>(number);
    if (on_number) MUSTER_RETURN_IF_ERROR(on_number(batch));
    MUSTER_FAILPOINT("initiator.after_number");
    created = ledger->Create(*batch, items);
  } while (absl::IsAlreadyExists(created));
  return created;
}

absl::StatusOr<Submission> BatchOpener::Open(const SubmitRequest& request,
                                             const std::stop_token& stop) {
  absl::StatusOr<Batch> prior = ledger_->FindByRequest(request.tenant, request.request_id);
  if (absl::IsNotFound(prior.status())) return Begin(request, nullptr, stop);
  MUSTER_RETURN_IF_ERROR(prior.status());
  const bool is_of_the_job = prior->job == job_->name;
  if (prior->state == BatchState::kCancelled) {
    // What it was to replace is to be replaced still.
    return Begin(request, is_of_the_job && !prior->replaces.empty() ? &*prior : nullptr, stop);
  }
  if (!is_of_the_job) {
    return absl::FailedPreconditionError(absl::StrCat("this request id belongs to batch ",
                                                      prior->number, " of job '", prior->job,
                                                      "': choose another one"));
  }
  if (!request.always_new) return Continue(request, *std::move(prior), stop);
  if (prior->state == BatchState::kComplete) return Begin(request, nullptr, stop);
  return ContinueOrBegin(request, *std::move(prior), stop);
}

absl::StatusOr<Submission> BatchOpener::ContinueOrBegin(const SubmitRequest& request, Batch prior,
                                                        const std::stop_token& stop) {
  const absl::Status same = VerifySource(prior, stop);
  // Of other content, which the prior batch does not count.
  if (absl::IsFailedPrecondition(same)) return Begin(request, nullptr, stop);
  MUSTER_RETURN_IF_ERROR(same);
  if (HasCodeOf(prior, request)) return Submission{std::move(prior), Start::kContinued};
  return Begin(request, &prior, stop);
}

absl::StatusOr<Submission> BatchOpener::Begin(const SubmitRequest& request, const Batch* replaced,
                                              const std::stop_token& stop) {
  Batch batch;
  batch.request_id = request.request_id;
  batch.job = job_->name;
  batch.job_revision = job_->revision;
  batch.job_definition = job_->text;
  batch.handler_version = request.handler_version;
  batch.tenant = request.tenant;
  batch.source_path = source_->path();
  batch.source_header = source_->header_fingerprint();
  batch.source_size = source_->size();
  batch.created = clock_->Now();
  batch.sla = request.sla.has_value() ? request.sla : job_->sla_max;
  batch.retention = job_->retention;
  batch.trace = request.trace.has_value() ? *request.trace : item::BeginTrace(trace_sample_);
  if (replaced != nullptr) {
    batch.replaces.push_back(replaced->number);
    batch.replaces.insert(batch.replaces.end(), replaced->replaces.begin(),
                          replaced->replaces.end());
  }
  MUSTER_ASSIGN_OR_RETURN(batch.source_content, ContentOf(*source_, stop));
  MUSTER_RETURN_IF_ERROR(RecordUnderNewNumber(ledger_, numbers_, &batch, {}));
  MUSTER_FAILPOINT("initiator.after_batch_recorded");
  return Submission{std::move(batch), Start::kNew};
}

absl::StatusOr<Submission> BatchOpener::Continue(const SubmitRequest& request, Batch batch,
                                                 const std::stop_token& stop) {
  MUSTER_RETURN_IF_ERROR(VerifySource(batch, stop));
  const bool complete = batch.state == BatchState::kComplete;
  if (HasCodeOf(batch, request)) {
    return Submission{std::move(batch), complete ? Start::kDone : Start::kContinued};
  }
  if (complete && request.allow_new_revision) return Begin(request, &batch, stop);
  return absl::FailedPreconditionError(absl::StrCat(
      "batch ", batch.number, " of this input is bound to job revision ",
      batch.job_revision.substr(0, 12), " and handler version ",
      batch.handler_version.empty() ? "any" : batch.handler_version, "; this is job revision ",
      job_->revision.substr(0, 12), " and handler version ", request.handler_version,
      complete ? ". " : ". Finish it with the job that it was begun with; ",
      complete ? "--new, or another --request-id, counts this input once more, beside it"
               : "or have --new begin a batch that counts in its place"));
}

bool BatchOpener::HasCodeOf(const Batch& batch, const SubmitRequest& request) const {
  const bool same_version =
      batch.handler_version.empty() || batch.handler_version == request.handler_version;
  return batch.job_revision == job_->revision && same_version;
}

absl::Status BatchOpener::VerifySource(const Batch& batch, const std::stop_token& stop) {
  if (source_->header_fingerprint() != batch.source_header) {
    return Changed(*source_, batch, "its header differs");
  }
  if (batch.source_content.has_value() && source_->size() == batch.source_size) {
    MUSTER_ASSIGN_OR_RETURN(const auto content, ContentOf(*source_, stop));
    if (content == batch.source_content) return absl::OkStatus();
  }
  // The source has changed, or is too long for a fingerprint: compare the items, which shows where
  // it differs, or that the recorded items are sound.
  MUSTER_RETURN_IF_ERROR(VerifyItems(batch, stop));
  if (source_->size() != batch.source_size) {
    return Changed(*source_, batch,
                   absl::StrCat("it had ", batch.source_size, " bytes and has ", source_->size()));
  }
  if (!batch.source_content.has_value()) return absl::OkStatus();
  return Changed(*source_, batch,
                 absl::StrCat("what follows its first ", batch.transactions, " records differs"));
}

absl::Status BatchOpener::VerifyItems(const Batch& batch, const std::stop_token& stop) {
  if (batch.items_deleted) return absl::OkStatus();
  for (uint64_t first = 0; first < batch.items;) {
    MUSTER_ASSIGN_OR_RETURN(const std::vector<ItemBoundary> items,
                            ledger_->Items(batch.number, first, kItemsToVerify));
    if (items.empty()) {
      return absl::DataLossError(
          absl::StrCat("ledger: batch ", batch.number, " lacks its item ", first));
    }
    for (const ItemBoundary& item : items) {
      const auto content = source_->Fingerprint(item.offset, item.length, stop);
      if (absl::IsOutOfRange(content.status())) {
        return Changed(*source_, batch, "it has become shorter");
      }
      MUSTER_RETURN_IF_ERROR(content.status());
      if (*content != item.content) {
        return Changed(*source_, batch, absl::StrCat(LinesOf(item), " differ"));
      }
    }
    first += items.size();
  }
  return absl::OkStatus();
}

}  // namespace muster::initiator::batch
