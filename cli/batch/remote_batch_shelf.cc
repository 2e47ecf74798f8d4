#include "cli/batch/remote_batch_shelf.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/proto_time.h"
#include "muster/base/status_macros.h"
#include "muster/report/rows.h"
#include "muster/v1/batch_service.grpc.pb.h"
#include "muster/v1/report_service.grpc.pb.h"

namespace muster::cli {
namespace {

constexpr int kBatchesPerPage = 1000;

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
  view.progress.batch = status.batch();
  view.progress.items_counted = status.items() - status.items_dead();
  view.progress.items_dead = status.items_dead();
  view.progress.transactions = status.transactions();
  view.progress.aggregated = status.aggregated();
  view.progress.rejected = status.rejected();
  view.progress.dead_lettered = status.dead_lettered();
  view.progress.duplicates = status.duplicates_dropped();
  view.progress.attempts = status.attempts();
  view.problem = status.problem();
  return view;
}

class RemoteBatchAdmin final : public BatchAdmin {
 public:
  explicit RemoteBatchAdmin(std::unique_ptr<MeshClient> mesh)
      : mesh_(std::move(mesh)), stub_(v1::BatchService::NewStub(mesh_->initiator())) {}

  absl::StatusOr<std::vector<BatchView>> List() override {
    std::vector<BatchView> views;
    v1::ListBatchesRequest request;
    request.set_page_size(kBatchesPerPage);
    do {
      v1::ListBatchesResponse response;
      MUSTER_RETURN_IF_ERROR(mesh_->Call(*stub_, &Stub::ListBatches, request, &response));
      for (const v1::BatchStatus& status : response.batches()) views.push_back(ViewOf(status));
      request.set_page_token(response.next_page_token());
    } while (!request.page_token().empty());
    // They come with the newest first.
    std::sort(views.begin(), views.end(), [](const BatchView& a, const BatchView& b) {
      return a.batch.number < b.batch.number;
    });
    return views;
  }

  absl::StatusOr<BatchView> Get(uint64_t batch) override {
    v1::GetBatchRequest request;
    request.set_batch(batch);
    v1::GetBatchResponse response;
    MUSTER_RETURN_IF_ERROR(mesh_->Call(*stub_, &Stub::GetBatch, request, &response));
    return ViewOf(response.status());
  }

  absl::StatusOr<std::vector<report::RejectionRow>> Rejections(uint64_t batch, int max) override {
    MUSTER_ASSIGN_OR_RETURN(const Peer controller, mesh_->Controller());
    v1::ListRejectionsRequest request;
    request.set_batch(batch);
    request.set_max(max);
    v1::ListRejectionsResponse response;
    const auto stub = v1::ReportService::NewStub(controller.channel);
    MUSTER_RETURN_IF_ERROR(mesh_->Call(*stub, &v1::ReportService::Stub::ListRejections, request,
                                       &response, controller));
    std::vector<report::RejectionRow> rows;
    for (const v1::RejectedTransaction& rejected : response.rejections()) {
      rows.push_back(report::FromProto(rejected));
    }
    return rows;
  }

  absl::StatusOr<report::StoredReceipt> Receipt(uint64_t batch) override {
    v1::GetReceiptRequest request;
    request.set_batch(batch);
    v1::GetReceiptResponse response;
    MUSTER_RETURN_IF_ERROR(mesh_->Call(*stub_, &Stub::GetReceipt, request, &response));
    return report::StoredReceipt{response.text(), response.checksum()};
  }

  absl::StatusOr<std::vector<std::string>> Check(uint64_t batch) override {
    return absl::FailedPreconditionError(absl::StrCat(
        "the receipt of batch ", batch,
        " can only be worked out again where ledger and report are: say --data-dir, of a "
        "folder with the initiator's ledger and the controller's report.db"));
  }

 private:
  using Stub = v1::BatchService::Stub;

  const std::unique_ptr<MeshClient> mesh_;
  const std::unique_ptr<Stub> stub_;
};

}  // namespace

std::unique_ptr<BatchAdmin> NewRemoteBatchAdmin(std::unique_ptr<MeshClient> mesh) {
  return std::make_unique<RemoteBatchAdmin>(std::move(mesh));
}

}  // namespace muster::cli
