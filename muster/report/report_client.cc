// SPDX-License-Identifier: Apache-2.0
#include "muster/report/report_client.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/status.h"

namespace muster::report {

namespace {

// Rows that are deleted at a time: some ten milliseconds, for which no result is counted.
constexpr int64_t kForgottenRows = 2000;

absl::Status CheckListed(absl::Span<const uint64_t> batches) {
  if (batches.size() <= kMaxListedBatches) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(batches.size(), " batches are more than ", kMaxListedBatches));
}

absl::Status CheckMax(size_t max) {
  if (max >= 1 && max <= kMaxReportItems) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("max is ", max, ", which is not within 1 to ", kMaxReportItems));
}

absl::Status CheckItems(absl::Span<const uint64_t> items) {
  if (items.size() <= kMaxReportItems) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(items.size(), " items are more than ", kMaxReportItems));
}

absl::Status CheckSelection(const RetrySelection& which, int64_t max) {
  if (which.lines.size() > kMaxNamedLines || which.items.size() > kMaxNamedLines) {
    return absl::InvalidArgumentError(absl::StrCat(
        which.lines.size(), " lines and ", which.items.size(), " items; at most ", kMaxNamedLines));
  }
  if (!which.lines.empty() && !which.items.empty()) {
    return absl::InvalidArgumentError("both lines and items are named");
  }
  if (which.is_all() && (max < 1 || max > kMaxClaimedRejections)) {
    return absl::InvalidArgumentError(
        absl::StrCat("max is ", max, ", which is not within 1 to ", kMaxClaimedRejections));
  }
  return absl::OkStatus();
}

absl::Status CannotRetry(uint64_t batch) {
  return absl::UnimplementedError(
      absl::StrCat("this report keeps no retries of what failed of batch ", batch));
}

// Adds what `asked` has answered about one batch.
absl::Status Add(absl::StatusOr<Progress> asked, std::map<uint64_t, Progress>* progress) {
  if (absl::IsNotFound(asked.status())) return absl::OkStatus();
  MUSTER_RETURN_IF_ERROR(asked.status());
  const uint64_t batch = asked->batch;
  progress->emplace(batch, *std::move(asked));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::map<uint64_t, Progress>> ReportClient::ListProgress(
    absl::Span<const uint64_t> batches) {
  MUSTER_RETURN_IF_ERROR(CheckListed(batches));
  std::map<uint64_t, Progress> progress;
  for (const uint64_t batch : batches) MUSTER_RETURN_IF_ERROR(Add(GetProgress(batch), &progress));
  return progress;
}

absl::Status ReportClient::CancelBatch(uint64_t batch, const Cancellation&) {
  return absl::UnimplementedError(absl::StrCat("this report cannot cancel batch ", batch));
}

absl::StatusOr<std::vector<uint64_t>> ReportClient::DeadLetteredItems(uint64_t batch, uint64_t,
                                                                      size_t) {
  return absl::UnimplementedError(
      absl::StrCat("this report does not list the dead-lettered items of batch ", batch));
}

absl::StatusOr<std::map<uint64_t, uint64_t>> ReportClient::RetriedItems(
    uint64_t batch, absl::Span<const uint64_t>) {
  return CannotRetry(batch);
}

absl::StatusOr<RetryClaims> ReportClient::ClaimRejections(uint64_t batch, const RetrySelection&,
                                                          int64_t) {
  return CannotRetry(batch);
}

absl::StatusOr<std::vector<RejectionPosition>> ReportClient::ClaimedRejections(
    uint64_t batch, int64_t, const RejectionPosition&, size_t) {
  return CannotRetry(batch);
}

absl::StatusOr<int64_t> ReportClient::RecordRetry(uint64_t batch, int64_t,
                                                  absl::Span<const RetriedTransaction>, uint64_t) {
  return CannotRetry(batch);
}

absl::StatusOr<bool> ReportClient::ForgetBatch(uint64_t batch) {
  return absl::UnimplementedError(absl::StrCat("this report cannot forget batch ", batch));
}

absl::StatusOr<Progress> LocalReportClient::RegisterBatch(const BatchShape& shape) {
  return report_->RegisterBatch(shape);
}

absl::StatusOr<Progress> LocalReportClient::GetProgress(uint64_t batch) {
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<ReportReader> reader, report_->Read());
  return reader->GetProgress(batch);
}

absl::StatusOr<std::map<uint64_t, Progress>> LocalReportClient::ListProgress(
    absl::Span<const uint64_t> batches) {
  MUSTER_RETURN_IF_ERROR(CheckListed(batches));
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<ReportReader> reader, report_->Read());
  std::map<uint64_t, Progress> progress;
  for (const uint64_t batch : batches) {
    MUSTER_RETURN_IF_ERROR(Add(reader->GetProgress(batch), &progress));
  }
  return progress;
}

absl::StatusOr<uint64_t> LocalReportClient::HighestBatch() {
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<ReportReader> reader, report_->Read());
  return reader->HighestBatch();
}

absl::StatusOr<std::vector<uint64_t>> LocalReportClient::UncountedItems(uint64_t batch,
                                                                        uint64_t item_count,
                                                                        uint64_t from, size_t max) {
  MUSTER_RETURN_IF_ERROR(CheckMax(max));
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<ReportReader> reader, report_->Read());
  return reader->UncountedItems(batch, item_count, from, max);
}

absl::StatusOr<std::vector<uint64_t>> LocalReportClient::DeadLetteredItems(uint64_t batch,
                                                                           uint64_t from,
                                                                           size_t max) {
  MUSTER_RETURN_IF_ERROR(CheckMax(max));
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<ReportReader> reader, report_->Read());
  return reader->DeadLetteredItems(batch, from, max);
}

absl::Status LocalReportClient::CheckCompletion(uint64_t batch) {
  // Checked here, because the controller would take an unregistered batch for a broken store.
  MUSTER_RETURN_IF_ERROR(GetProgress(batch).status());
  return check_completion_ ? check_completion_(batch) : absl::OkStatus();
}

absl::StatusOr<StoredReceipt> LocalReportClient::GetReceipt(uint64_t batch) {
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<ReportReader> reader, report_->Read());
  return reader->GetReceipt(batch);
}

absl::StatusOr<Tally> LocalReportClient::GetTally(uint64_t batch) {
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<ReportReader> reader, report_->Read());
  return TakeTally(*reader, batch);
}

absl::Status LocalReportClient::ReopenDeadLettered(uint64_t batch,
                                                   absl::Span<const uint64_t> items) {
  MUSTER_RETURN_IF_ERROR(CheckItems(items));
  return report_->ReopenDeadLettered(batch, items);
}

absl::Status LocalReportClient::CancelBatch(uint64_t batch, const Cancellation& cancellation) {
  return report_->CancelBatch(batch, cancellation);
}

absl::StatusOr<std::map<uint64_t, uint64_t>> LocalReportClient::RetriedItems(
    uint64_t batch, absl::Span<const uint64_t> items) {
  MUSTER_RETURN_IF_ERROR(CheckItems(items));
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<ReportReader> reader, report_->Read());
  return reader->RetriedItems(batch, items);
}

absl::StatusOr<RetryClaims> LocalReportClient::ClaimRejections(uint64_t batch,
                                                               const RetrySelection& which,
                                                               int64_t max) {
  MUSTER_RETURN_IF_ERROR(CheckSelection(which, max));
  return report_->ClaimRejections(batch, which, max);
}

absl::StatusOr<std::vector<RejectionPosition>> LocalReportClient::ClaimedRejections(
    uint64_t batch, int64_t retry, const RejectionPosition& after, size_t max) {
  MUSTER_RETURN_IF_ERROR(CheckMax(max));
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<ReportReader> reader, report_->Read());
  return reader->ClaimedRejections(batch, retry, after, max);
}

absl::StatusOr<int64_t> LocalReportClient::RecordRetry(
    uint64_t batch, int64_t retry, absl::Span<const RetriedTransaction> transactions,
    uint64_t retried_in) {
  if (transactions.size() > kMaxReportItems) {
    return absl::InvalidArgumentError(
        absl::StrCat(transactions.size(), " transactions are more than ", kMaxReportItems));
  }
  return report_->RecordRetry(batch, retry, transactions, retried_in);
}

absl::StatusOr<bool> LocalReportClient::ForgetBatch(uint64_t batch) {
  return report_->ForgetBatch(batch, kForgottenRows);
}

}  // namespace muster::report
