// SPDX-License-Identifier: Apache-2.0
#include "cli/batch/local_batch_admin.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/batch/batch_view.h"
#include "cli/batch/receipt_check.h"
#include "cli/output/environment.h"
#include "muster/backend/backend.h"
#include "muster/base/status.h"
#include "muster/input/byte_source.h"
#include "muster/item/cancelled_receipt.h"
#include "muster/item/complete_batch.h"
#include "muster/item/held_key_admin.h"
#include "muster/item/held_keys.h"
#include "muster/item/queue_names.h"
#include "muster/job/job_file.h"
#include "muster/ledger/batch_ledger.h"
#include "muster/report/audit.h"
#include "services/initiator/batch/read_records.h"
#include "services/initiator/batch/source.h"

namespace muster::cli {
namespace {

// A run looks for as long before it takes keys for held (HeldWatch).
constexpr absl::Duration kStandsFor = absl::Seconds(2);

bool IsCancelled(const absl::StatusOr<ledger::Batch>& batch) {
  return batch.ok() && batch->state == ledger::BatchState::kCancelled;
}

absl::StatusOr<BatchView> ViewBatch(const ledger::Batch& batch, report::ReportReader& reader,
                                    absl::Time now) {
  BatchView view{batch, {}, true};
  absl::StatusOr<report::Progress> progress = reader.GetProgress(batch.number);
  if (progress.ok()) {
    view.progress = *std::move(progress);
  } else if (!absl::IsNotFound(progress.status())) {
    return progress.status();
  }
  view.problem = std::string(item::CheckCounted(batch, view.progress).message());
  view.promise = item::StateOfPromise(batch, static_cast<int64_t>(batch.transactions),
                                      view.progress.transactions, now);
  return view;
}

// The batches of a data directory: its ledger and its report.
class LocalBatchAdmin final : public BatchAdmin {
 public:
  LocalBatchAdmin(std::unique_ptr<ledger::BatchLedger> ledger,
                  std::unique_ptr<report::ReportStore> report,
                  std::unique_ptr<report::ReportReader> reader, std::string data_dir,
                  base::Clock* clock)
      : ledger_(std::move(ledger)),
        report_(std::move(report)),
        reader_(std::move(reader)),
        data_dir_(std::move(data_dir)),
        clock_(clock) {}

  absl::StatusOr<BatchViews> List(const item::BatchFilter& filter, uint64_t below,
                                  size_t max) override {
    const absl::Time now = clock_->Now();
    BatchViews views;
    views.next_below = below;
    while (views.next_below != 0 && views.batches.size() < max) {
      MUSTER_ASSIGN_OR_RETURN(
          const ledger::BatchPage page,
          item::FindBatches(*ledger_, filter, views.next_below, max - views.batches.size(), now));
      for (const ledger::Batch& batch : page.batches) {
        MUSTER_ASSIGN_OR_RETURN(views.batches.emplace_back(), ViewBatch(batch, *reader_, now));
      }
      views.next_below = page.next_below;
    }
    return views;
  }

  absl::StatusOr<BatchView> Get(uint64_t batch) override {
    MUSTER_ASSIGN_OR_RETURN(const ledger::Batch recorded, ledger_->Get(batch));
    MUSTER_ASSIGN_OR_RETURN(BatchView view, ViewBatch(recorded, *reader_, clock_->Now()));
    // While the batch moves, the held keys of its job can wait.
    const absl::Time moved = view.progress.last_counted.value_or(recorded.created);
    if (view.problem.empty() && clock_->Now() - moved >= kStandsFor) {
      view.problem = WhatIsHeld(recorded);
    }
    return view;
  }

  absl::StatusOr<std::vector<report::RejectionRow>> Rejections(uint64_t batch, int max) override {
    std::vector<report::RejectionRow> rows;
    MUSTER_RETURN_IF_ERROR(reader_->ForEachRejection(
        batch, 0, max, [&rows](const report::RejectionRow& row) { rows.push_back(row); }));
    return rows;
  }

  absl::StatusOr<std::vector<report::RejectionRow>> RejectionsAfter(
      uint64_t batch, const report::RejectionPosition& after, int max) override {
    MUSTER_RETURN_IF_ERROR(reader_->GetProgress(batch).status());  // NotFound: no such batch
    std::vector<report::RejectionRow> rows;
    MUSTER_RETURN_IF_ERROR(reader_->ForEachRejectionAfter(
        batch, after, max, [&rows](const report::RejectionRow& row) { rows.push_back(row); }));
    return rows;
  }

  absl::StatusOr<std::vector<report::ItemRow>> DeadLetters(uint64_t batch, uint64_t from,
                                                           int max) override {
    return reader_->DeadLetters(batch, from, static_cast<size_t>(max));
  }

  absl::StatusOr<v1::ReadRecordsResponse> ReadRecords(
      const v1::ReadRecordsRequest& request) override {
    using Source = std::shared_ptr<const input::ByteSource>;
    const auto open = [this](const ledger::Batch& batch) -> absl::StatusOr<Source> {
      if (!batch.content.empty()) return initiator::batch::SourceOf(batch.content);
      if (batch.content_path.empty()) return initiator::batch::OpenUsersContent(batch);
      return input::FileSource::Open(absl::StrCat(data_dir_, "/", batch.content_path));
    };
    v1::ReadRecordsResponse response;
    MUSTER_RETURN_IF_ERROR(initiator::batch::ReadRecords(request, ledger_.get(), open, &response));
    return response;
  }

  absl::StatusOr<report::StoredReceipt> Receipt(uint64_t batch) override {
    const absl::StatusOr<ledger::Batch> recorded = ledger_->Get(batch);
    // What the report has of a batch can be shown without the ledger.
    if (!IsCancelled(recorded)) {
      absl::StatusOr<report::StoredReceipt> stored = reader_->GetReceipt(batch);
      const bool is_open = recorded.ok() && !ledger::IsOver(recorded->state);
      if (!is_open || !absl::IsNotFound(stored.status())) return stored;
      return absl::FailedPreconditionError(
          absl::StrCat("batch ", batch, " is ", ledger::BatchStateName(recorded->state),
                       ": it has no receipt before it is complete. If no process works on it, ",
                       HowToGoOn(*recorded, data_dir_)));
    }
    const absl::Time now = clock_->Now();
    absl::StatusOr<report::Tally> tally = report::TakeTally(*reader_, batch);
    if (absl::IsNotFound(tally.status())) tally = report::EmptyTally(batch);
    MUSTER_RETURN_IF_ERROR(tally.status());
    return item::CancelledReceipt(*recorded, *tally, now);
  }

  absl::StatusOr<std::vector<std::string>> Check(uint64_t batch) override {
    if (IsCancelled(ledger_->Get(batch))) {
      return absl::FailedPreconditionError(absl::StrCat(
          "the receipt of batch ", batch,
          ", which is cancelled, is made from the stored rows each time: no issued one "
          "exists to compare with them"));
    }
    return CheckReceipt(batch, *ledger_, *reader_);
  }

 private:
  // Of the keys of its job, for people; empty: none is, or it cannot be told.
  std::string WhatIsHeld(const ledger::Batch& batch) const {
    if (ledger::IsOver(batch.state)) return "";
    const absl::StatusOr<job::JobDefinition> job = job::ParseJob(batch.job_definition, batch.job);
    if (!job.ok() || job->on_poison != job::OnPoison::kHold) return "";
    const auto records =
        backend::OpenSyncStore(backend::DataDirUrls(data_dir_).sync, backend::Mode::kReadOnly);
    if (!records.ok()) return "";
    item::HeldKeyStore keys(records->get());
    const absl::StatusOr<item::HeldSummary> held = item::CountHeldKeys(
        item::InputQueues(item::kLocalAccount, batch.job, job->queue.partitions), keys);
    return held.ok() ? item::InWords(*held, DataDirOption(data_dir_)) : "";
  }

  const std::unique_ptr<ledger::BatchLedger> ledger_;
  const std::unique_ptr<report::ReportStore> report_;
  const std::unique_ptr<report::ReportReader> reader_;  // goes before its store
  const std::string data_dir_;
  base::Clock* const clock_;  // not owned
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
                                           data_dir, clock);
}

}  // namespace muster::cli
