// SPDX-License-Identifier: Apache-2.0
#include "cli/batch/batch_admin.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "cli/batch/outcome.h"
#include "cli/server/mesh_client.h"
#include "cli/server/options.h"
#include "muster/backend/backend.h"
#include "muster/base/clock.h"
#include "muster/base/proto_time.h"
#include "muster/base/status.h"
#include "muster/input/byte_source.h"
#include "muster/item/cancelled_receipt.h"
#include "muster/item/complete_batch.h"
#include "muster/ledger/batch_proto.h"
#include "muster/report/audit.h"
#include "muster/report/report_proto.h"
#include "muster/v1/batch_service.grpc.pb.h"
#include "muster/v1/report_service.grpc.pb.h"
#include "services/initiator/batch/read_records.h"
#include "services/initiator/batch/source.h"

namespace muster::cli {

namespace {

// Item boundaries read at a time, and differences named before one gives up counting them.
constexpr size_t kPage = 1024;
constexpr size_t kMaxNamedDifferences = 100;

// Walks through the ledger's boundaries in step with the report's items, which come in order.
class LedgerWalk {
 public:
  LedgerWalk(uint64_t batch, ledger::BatchLedger* ledger) : batch_(batch), ledger_(ledger) {}

  // What is wrong with an item, or "".
  absl::StatusOr<std::string> Compare(const report::ItemRow& row) {
    if (row.index < first_ || row.index >= first_ + page_.size()) {
      first_ = row.index;
      MUSTER_ASSIGN_OR_RETURN(page_, ledger_->Items(batch_, first_, kPage));
      if (page_.empty()) return absl::StrCat("item ", row.index, " is not in the ledger");
    }
    const ledger::ItemBoundary& item = page_[row.index - first_];
    if (item.content != row.content) {
      return absl::StrCat("item ", row.index,
                          " was counted with another content than the ledger's");
    }
    if (item.transactions != row.transactions) {
      return absl::StrCat("item ", row.index, " was counted with ", row.transactions,
                          " transactions, the ledger has ", item.transactions);
    }
    return std::string();
  }

 private:
  const uint64_t batch_;
  ledger::BatchLedger* const ledger_;  // not owned
  uint64_t first_ = 0;
  std::vector<ledger::ItemBoundary> page_;
};

void CompareFact(absl::string_view name, absl::string_view receipt, absl::string_view ledger,
                 std::vector<std::string>* differences) {
  if (receipt == ledger) return;
  differences->push_back(
      absl::StrCat("the receipt says '", name, " ", receipt, "', the ledger '", ledger, "'"));
}

// The report's own rows show only that the receipt fits them: what was never counted left no row.
// That nothing is missing, only the ledger can say.
void CompareWithLedger(const report::Receipt& receipt, const ledger::Batch& batch,
                       std::vector<std::string>* differences) {
  CompareFact("job", receipt.job, batch.job, differences);
  CompareFact("job_revision", receipt.job_revision, batch.job_revision, differences);
  CompareFact("handler_version", receipt.handler_version, batch.handler_version, differences);
  CompareFact("items", absl::StrCat(receipt.items), absl::StrCat(batch.items), differences);
  CompareFact("transactions", absl::StrCat(receipt.transactions), absl::StrCat(batch.transactions),
              differences);
}

}  // namespace

absl::StatusOr<std::vector<std::string>> CheckReceipt(uint64_t batch, ledger::BatchLedger& ledger,
                                                      report::ReportReader& reader) {
  MUSTER_ASSIGN_OR_RETURN(report::Verification verification, report::VerifyReceipt(reader, batch));
  std::vector<std::string> differences = std::move(verification.differences);
  const absl::StatusOr<ledger::Batch> known = ledger.Get(batch);
  if (absl::IsNotFound(known.status())) {
    differences.push_back("the ledger does not know the batch");
    return differences;
  }
  MUSTER_RETURN_IF_ERROR(known.status());
  // A receipt that could not be read, or is another batch's, is a difference already.
  if (verification.receipt.batch == batch) {
    CompareWithLedger(verification.receipt, *known, &differences);
  }
  if (known->items_deleted) return differences;
  LedgerWalk walk(batch, &ledger);
  absl::Status failed;
  MUSTER_RETURN_IF_ERROR(reader.ForEachItem(batch, [&](const report::ItemRow& row) {
    if (!failed.ok() || differences.size() >= kMaxNamedDifferences) return;
    absl::StatusOr<std::string> difference = walk.Compare(row);
    if (!difference.ok()) {
      failed = difference.status();
    } else if (!difference->empty()) {
      differences.push_back(*std::move(difference));
    }
  }));
  MUSTER_RETURN_IF_ERROR(failed);
  return differences;
}

namespace {

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
    return ViewBatch(recorded, *reader_, clock_->Now());
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
                       ": it has no receipt before it is complete"));
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
  const std::unique_ptr<ledger::BatchLedger> ledger_;
  const std::unique_ptr<report::ReportStore> report_;
  const std::unique_ptr<report::ReportReader> reader_;  // goes before its store
  const std::string data_dir_;
  base::Clock* const clock_;  // not owned
};

// Beside a run that works with the directory, or alone. `clock` is not owned.
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

ledger::BatchState StateOf(v1::BatchState state) {
  switch (state) {
    case v1::BATCH_STATE_SEALED:
      return ledger::BatchState::kSealed;
    case v1::BATCH_STATE_COMPLETE:
      return ledger::BatchState::kComplete;
    case v1::BATCH_STATE_CANCELLED:
      return ledger::BatchState::kCancelled;
    default:  // also a state that a newer server has
      return ledger::BatchState::kOpen;
  }
}

v1::BatchState ToProto(ledger::BatchState state) {
  switch (state) {
    case ledger::BatchState::kOpen:
      return v1::BATCH_STATE_OPEN;
    case ledger::BatchState::kSealed:
      return v1::BATCH_STATE_SEALED;
    case ledger::BatchState::kComplete:
      return v1::BATCH_STATE_COMPLETE;
    case ledger::BatchState::kCancelled:
      return v1::BATCH_STATE_CANCELLED;
  }
  return v1::BATCH_STATE_UNSPECIFIED;
}

v1::ListBatchesRequest RequestOf(const item::BatchFilter& filter) {
  v1::ListBatchesRequest request;
  request.set_job(filter.job);
  request.set_tenant(filter.tenant);
  for (const ledger::BatchState state : filter.states) request.add_states(ToProto(state));
  if (filter.since.has_value()) *request.mutable_since() = base::ToProto(*filter.since);
  request.set_late(filter.late);
  request.set_calls(!filter.hides_calls);
  request.mutable_labels()->insert(filter.labels.begin(), filter.labels.end());
  return request;
}

BatchView ViewOf(const v1::BatchStatus& status) {
  BatchView view;
  view.has_ledger = false;
  view.batch.number = status.batch();
  view.batch.request_id = status.request_id();
  view.batch.job = status.job();
  view.batch.job_revision = status.job_revision();
  view.batch.handler_version = status.handler_version();
  view.batch.cancel_reason = status.cancel_reason();
  view.batch.tenant = status.tenant();
  if (auto trace = base::TraceContext::FromTraceparent(status.traceparent()); trace.ok()) {
    view.batch.trace = *std::move(trace);
  }
  view.batch.created = base::FromProto(status.created());
  view.batch.state = StateOf(status.state());
  view.batch.transactions = static_cast<uint64_t>(status.progress().read());
  if (status.has_completed()) view.batch.completed = base::FromProto(status.completed());
  view.progress = ProgressOf(status);
  view.batch.labels = {status.labels().begin(), status.labels().end()};
  view.problem = status.problem();
  view.counts_problem = status.counts_problem();
  view.removal_problem = status.removal_problem();
  view.removal_problem_since = base::FromProto(status.removal_problem_since());
  view.promise = PromiseOf(status);
  view.batch.multiline = ledger::FromProto(status.multiline());
  return view;
}

// The batches that an initiator serves, with what its controller has counted.
class RemoteBatchAdmin final : public BatchAdmin {
 public:
  explicit RemoteBatchAdmin(std::unique_ptr<MeshClient> mesh) : mesh_(std::move(mesh)) {}

  absl::StatusOr<BatchViews> List(const item::BatchFilter& filter, uint64_t below,
                                  size_t max) override {
    v1::ListBatchesRequest request = RequestOf(filter);
    if (below != std::numeric_limits<uint64_t>::max()) request.set_page_token(absl::StrCat(below));
    BatchViews views;
    // A page may have fewer batches than it was asked for, or none.
    do {
      request.set_page_size(
          static_cast<int>(std::min(max, kMaxListedBatches) - views.batches.size()));
      MUSTER_ASSIGN_OR_RETURN(const auto page, mesh_->Call(&Stub::ListBatches, request));
      for (const v1::BatchStatus& status : page.batches()) views.batches.push_back(ViewOf(status));
      request.set_page_token(page.next_page_token());
    } while (!request.page_token().empty() && views.batches.size() < max);
    if (!request.page_token().empty() &&
        !absl::SimpleAtoi(request.page_token(), &views.next_below)) {
      return absl::InternalError("the server's page token is no number");
    }
    return views;
  }

  absl::StatusOr<BatchView> Get(uint64_t batch) override {
    v1::GetBatchRequest request;
    request.set_batch(batch);
    MUSTER_ASSIGN_OR_RETURN(const auto response, mesh_->Call(&Stub::GetBatch, request));
    return ViewOf(response.status());
  }

  absl::StatusOr<std::vector<report::RejectionRow>> Rejections(uint64_t batch, int max) override {
    v1::ListRejectionsRequest request;
    request.set_batch(batch);
    request.set_max(max);
    return ListRejections(request);
  }

  absl::StatusOr<std::vector<report::RejectionRow>> RejectionsAfter(
      uint64_t batch, const report::RejectionPosition& after, int max) override {
    v1::ListRejectionsRequest request;
    request.set_batch(batch);
    request.set_max(max);
    request.mutable_after()->set_item(after.item);
    request.mutable_after()->set_line(after.line);
    return ListRejections(request);
  }

  absl::StatusOr<std::vector<report::ItemRow>> DeadLetters(uint64_t batch, uint64_t from,
                                                           int max) override {
    v1::ListDeadLettersRequest request;
    request.set_batch(batch);
    request.set_from(from);
    request.set_max(max);
    MUSTER_ASSIGN_OR_RETURN(const auto response, CallReport(&Report::ListDeadLetters, request));
    std::vector<report::ItemRow> rows;
    for (const v1::DeadLetter& dead : response.items()) {
      report::ItemRow& row = rows.emplace_back();
      row.index = dead.item();
      row.transactions = dead.transactions();
      row.attempts = dead.attempts();
      row.cause = dead.cause();
      row.retried_in = dead.retried_in();
    }
    return rows;
  }

  absl::StatusOr<v1::ReadRecordsResponse> ReadRecords(
      const v1::ReadRecordsRequest& request) override {
    return mesh_->Call(&Stub::ReadRecords, request);
  }

  absl::StatusOr<report::StoredReceipt> Receipt(uint64_t batch) override {
    v1::GetReceiptRequest request;
    request.set_batch(batch);
    MUSTER_ASSIGN_OR_RETURN(const auto response, mesh_->Call(&Stub::GetReceipt, request));
    return report::StoredReceipt{response.text(), response.checksum()};
  }

  absl::StatusOr<std::vector<std::string>> Check(uint64_t batch) override {
    return absl::FailedPreconditionError(absl::StrCat(
        "the receipt of batch ", batch,
        " can only be computed again from the ledger and the report: give --data-dir a "
        "folder with the initiator's ledger and the controller's report.db"));
  }

 private:
  using Stub = v1::BatchService::Stub;
  using Report = v1::ReportService::Stub;

  absl::StatusOr<std::vector<report::RejectionRow>> ListRejections(
      const v1::ListRejectionsRequest& request) {
    MUSTER_ASSIGN_OR_RETURN(const auto response, CallReport(&Report::ListRejections, request));
    std::vector<report::RejectionRow> rows;
    for (const v1::RejectedTransaction& rejected : response.rejections()) {
      rows.push_back(report::FromProto(rejected));
    }
    return rows;
  }

  // The controller is asked for once, however many pages are read.
  template <typename Request, typename Response>
  absl::StatusOr<Response> CallReport(MeshClient::Method<Report, Request, Response> method,
                                      const std::type_identity_t<Request>& request) {
    if (!controller_.has_value()) {
      MUSTER_ASSIGN_OR_RETURN(controller_, mesh_->Controller());
    }
    return mesh_->Call(method, request, *controller_);
  }

  const std::unique_ptr<MeshClient> mesh_;
  std::optional<Peer> controller_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<BatchAdmin>> OpenBatchAdmin(const CommonOptions& options,
                                                           const Environment& environment) {
  if (!options.server.named()) {
    MUSTER_RETURN_IF_ERROR(RequireDataDir(options.data_dir));
    return OpenLocalBatchAdmin(options.data_dir, environment.clock);
  }
  MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<MeshClient> mesh, MeshClient::Open(options.server));
  return std::make_unique<RemoteBatchAdmin>(std::move(mesh));
}

}  // namespace muster::cli
