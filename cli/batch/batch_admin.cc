// SPDX-License-Identifier: Apache-2.0
#include "cli/batch/batch_admin.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "cli/batch/local_batch_admin.h"
#include "cli/batch/outcome.h"
#include "cli/server/mesh_client.h"
#include "cli/server/options.h"
#include "muster/base/proto_time.h"
#include "muster/base/status.h"
#include "muster/ledger/batch_proto.h"
#include "muster/report/report_proto.h"
#include "muster/v1/batch_service.grpc.pb.h"
#include "muster/v1/report_service.grpc.pb.h"

namespace muster::cli {
namespace {

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
