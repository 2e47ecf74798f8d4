#include "cli/batch/local_batch_shelf.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/batch/receipt_check.h"
#include "muster/backend/backend.h"
#include "muster/base/status_macros.h"
#include "muster/item/cancelled_receipt.h"
#include "muster/report/tally.h"

namespace muster::cli {
namespace {

bool IsCancelled(const absl::StatusOr<ledger::Batch>& batch) {
  return batch.ok() && batch->state == ledger::BatchState::kCancelled;
}

class LocalBatchAdmin final : public BatchAdmin {
 public:
  LocalBatchAdmin(std::unique_ptr<ledger::BatchLedger> ledger,
                  std::unique_ptr<report::ReportStore> report,
                  std::unique_ptr<report::ReportReader> reader, base::Clock* clock)
      : ledger_(std::move(ledger)),
        report_(std::move(report)),
        reader_(std::move(reader)),
        clock_(clock) {}

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
    const absl::StatusOr<ledger::Batch> recorded = ledger_->Get(batch);
    // What the report has of a batch can be shown without the ledger.
    if (!IsCancelled(recorded)) return reader_->GetReceipt(batch);
    const absl::Time now = clock_->Now();
    absl::StatusOr<report::Tally> tally = report::TakeTally(*reader_, batch);
    if (absl::IsNotFound(tally.status())) tally = report::EmptyTally(batch);
    MUSTER_RETURN_IF_ERROR(tally.status());
    return item::CancelledReceipt(*recorded, *tally, now);
  }

  absl::StatusOr<std::vector<std::string>> Check(uint64_t batch) override {
    if (IsCancelled(ledger_->Get(batch))) {
      return absl::FailedPreconditionError(
          absl::StrCat("the receipt of batch ", batch,
                       ", which is cancelled, is made of the stored rows each time: there is none "
                       "to hold against them"));
    }
    return CheckReceipt(batch, *ledger_, *reader_);
  }

 private:
  const std::unique_ptr<ledger::BatchLedger> ledger_;
  const std::unique_ptr<report::ReportStore> report_;
  const std::unique_ptr<report::ReportReader> reader_;  // goes before its store
  base::Clock* const clock_;                            // not owned
};

}  // namespace

absl::StatusOr<std::unique_ptr<BatchAdmin>> OpenLocalBatchAdmin(const std::string& data_dir,
                                                                base::Clock* clock) {
  const backend::DataDirUrls urls(data_dir);
  MUSTER_ASSIGN_OR_RETURN(auto ledger,
                          backend::OpenBatchLedger(urls.ledger, backend::Mode::kReadOnly));
  MUSTER_ASSIGN_OR_RETURN(auto report,
                          backend::OpenReportStore(urls.report, backend::Mode::kReadOnly, clock));
  MUSTER_ASSIGN_OR_RETURN(auto reader, report->Read());
  return std::make_unique<LocalBatchAdmin>(std::move(ledger), std::move(report), std::move(reader),
                                           clock);
}

}  // namespace muster::cli
