#include "cli/local_batch_shelf.h"

#include <utility>

#include "cli/receipt_check.h"
#include "muster/backend/backend.h"
#include "muster/base/status_macros.h"

namespace muster::cli {
namespace {

class LocalBatchShelf final : public BatchShelf {
 public:
  LocalBatchShelf(std::unique_ptr<ledger::BatchLedger> ledger,
                  std::unique_ptr<report::ReportStore> report,
                  std::unique_ptr<report::ReportReader> reader)
      : ledger_(std::move(ledger)), report_(std::move(report)), reader_(std::move(reader)) {}

  absl::StatusOr<std::vector<BatchView>> List() override {
    MUSTER_ASSIGN_OR_RETURN(const std::vector<ledger::Batch> batches, ledger_->List());
    std::vector<BatchView> views;
    for (const ledger::Batch& batch : batches) {
      MUSTER_ASSIGN_OR_RETURN(views.emplace_back(), ViewBatch(batch, *reader_));
    }
    return views;
  }

  absl::StatusOr<BatchView> Get(uint64_t batch) override {
    MUSTER_ASSIGN_OR_RETURN(const ledger::Batch recorded, ledger_->Get(batch));
    return ViewBatch(recorded, *reader_);
  }

  absl::StatusOr<std::vector<report::RejectionRow>> Rejections(uint64_t batch, int max) override {
    std::vector<report::RejectionRow> rows;
    MUSTER_RETURN_IF_ERROR(reader_->ForEachRejection(
        batch, 0, max, [&rows](const report::RejectionRow& row) { rows.push_back(row); }));
    return rows;
  }

  absl::StatusOr<report::StoredReceipt> Receipt(uint64_t batch) override {
    return reader_->GetReceipt(batch);
  }

  absl::StatusOr<std::vector<std::string>> Check(uint64_t batch) override {
    return CheckReceipt(batch, *ledger_, *reader_);
  }

 private:
  const std::unique_ptr<ledger::BatchLedger> ledger_;
  const std::unique_ptr<report::ReportStore> report_;
  const std::unique_ptr<report::ReportReader> reader_;  // goes before its store
};

}  // namespace

absl::StatusOr<std::unique_ptr<BatchShelf>> OpenLocalBatchShelf(const std::string& data_dir,
                                                                base::Clock* clock) {
  const backend::DataDirUrls urls(data_dir);
  MUSTER_ASSIGN_OR_RETURN(auto ledger,
                          backend::OpenBatchLedger(urls.ledger, backend::Mode::kReadOnly));
  MUSTER_ASSIGN_OR_RETURN(auto report,
                          backend::OpenReportStore(urls.report, backend::Mode::kReadOnly, clock));
  MUSTER_ASSIGN_OR_RETURN(auto reader, report->Read());
  return std::make_unique<LocalBatchShelf>(std::move(ledger), std::move(report), std::move(reader));
}

}  // namespace muster::cli
