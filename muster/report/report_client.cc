#include "muster/report/report_client.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "muster/base/status.h"

namespace muster::report {

absl::StatusOr<Progress> LocalReportClient::RegisterBatch(const BatchShape& shape) {
  return report_->RegisterBatch(shape);
}

absl::StatusOr<Progress> LocalReportClient::GetProgress(uint64_t batch) {
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<ReportReader> reader, report_->Read());
  return reader->GetProgress(batch);
}

absl::StatusOr<uint64_t> LocalReportClient::HighestBatch() {
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<ReportReader> reader, report_->Read());
  return reader->HighestBatch();
}

absl::StatusOr<std::vector<uint64_t>> LocalReportClient::UncountedItems(uint64_t batch,
                                                                        uint64_t item_count,
                                                                        uint64_t from, size_t max) {
  if (max < 1 || max > kMaxReportItems) {
    return absl::InvalidArgumentError(
        absl::StrCat("max is ", max, ", which is not within 1 to ", kMaxReportItems));
  }
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<ReportReader> reader, report_->Read());
  return reader->UncountedItems(batch, item_count, from, max);
}

absl::Status LocalReportClient::CheckCompletion(uint64_t batch) {
  // Checked here, because the controller would take an unregistered batch for a broken store.
  MUSTER_RETURN_IF_ERROR(GetProgress(batch).status());
  check_completion_(batch);
  return absl::OkStatus();
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
  if (items.size() > kMaxReportItems) {
    return absl::InvalidArgumentError(
        absl::StrCat(items.size(), " items are more than ", kMaxReportItems));
  }
  return report_->ReopenDeadLettered(batch, items);
}

}  // namespace muster::report
