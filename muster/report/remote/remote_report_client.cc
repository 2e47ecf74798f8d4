// SPDX-License-Identifier: Apache-2.0
#include "muster/report/remote/remote_report_client.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "muster/base/proto_time.h"
#include "muster/base/status.h"
#include "muster/report/report_proto.h"
#include "muster/rpc/status.h"

namespace muster::report::remote {
namespace {

// Beyond what the field holds, it is too many all the same.
int32_t MaxField(size_t max) {
  constexpr size_t kMost = std::numeric_limits<int32_t>::max();
  return static_cast<int32_t>(std::min(max, kMost));
}

}  // namespace

RemoteReportClient::RemoteReportClient(rpc::InstanceAddresses controllers,
                                       rpc::ChannelOptions channel_options, absl::Duration timeout)
    : controllers_("controller", std::move(controllers), std::move(channel_options)),
      timeout_(timeout) {}

template <typename Request, typename Response>
absl::StatusOr<Response> RemoteReportClient::Call(grpc::Status (Stub::*method)(grpc::ClientContext*,
                                                                               const Request&,
                                                                               Response*),
                                                  const Request& request) {
  Response response;
  MUSTER_ASSIGN_OR_RETURN(
      const rpc::Asked asked,
      controllers_.Ask({.most = 1, .timeout = timeout_}, method, request, &response,
                       [](const absl::Status&) { return rpc::Verdict(); }));
  if (asked.instances == 0) return absl::UnavailableError("no controller is known here");
  MUSTER_RETURN_IF_ERROR(asked.answer.value_or(asked.silence));
  return response;
}

absl::StatusOr<report::Progress> RemoteReportClient::RegisterBatch(
    const report::BatchShape& shape) {
  v1::RegisterBatchRequest request;
  request.set_batch(shape.batch);
  *request.mutable_schema() = report::ToProto(shape);
  request.set_owner(shape.owner);
  request.mutable_replaces()->Add(shape.replaces.begin(), shape.replaces.end());
  MUSTER_ASSIGN_OR_RETURN(const auto response, Call(&Stub::RegisterBatch, request));
  return report::FromProto(response.progress());
}

absl::StatusOr<report::Progress> RemoteReportClient::GetProgress(uint64_t batch) {
  v1::GetProgressRequest request;
  request.set_batch(batch);
  MUSTER_ASSIGN_OR_RETURN(const auto response, Call(&Stub::GetProgress, request));
  return report::FromProto(response.progress());
}

absl::StatusOr<std::map<uint64_t, report::Progress>> RemoteReportClient::ListProgress(
    absl::Span<const uint64_t> batches) {
  v1::ListProgressRequest request;
  request.mutable_batches()->Add(batches.begin(), batches.end());
  const auto response = Call(&Stub::ListProgress, request);
  // An older controller answers one by one.
  if (absl::IsUnimplemented(response.status())) return report::ReportClient::ListProgress(batches);
  MUSTER_RETURN_IF_ERROR(response.status());
  std::map<uint64_t, report::Progress> progress;
  for (const v1::CountingProgress& counted : response->progress()) {
    progress.emplace(counted.batch(), report::FromProto(counted));
  }
  return progress;
}

absl::StatusOr<uint64_t> RemoteReportClient::HighestBatch() {
  MUSTER_ASSIGN_OR_RETURN(const auto response,
                          Call(&Stub::GetHighestBatch, v1::GetHighestBatchRequest()));
  return response.batch();
}

absl::StatusOr<std::vector<uint64_t>> RemoteReportClient::UncountedItems(uint64_t batch,
                                                                         uint64_t item_count,
                                                                         uint64_t from,
                                                                         size_t max) {
  v1::ListUncountedItemsRequest request;
  request.set_batch(batch);
  request.set_item_count(item_count);
  request.set_from(from);
  request.set_max(MaxField(max));
  MUSTER_ASSIGN_OR_RETURN(const auto response, Call(&Stub::ListUncountedItems, request));
  return std::vector<uint64_t>(response.indexes().begin(), response.indexes().end());
}

absl::StatusOr<std::vector<uint64_t>> RemoteReportClient::DeadLetteredItems(uint64_t batch,
                                                                            uint64_t from,
                                                                            size_t max) {
  v1::ListDeadLetteredItemsRequest request;
  request.set_batch(batch);
  request.set_from(from);
  request.set_max(MaxField(max));
  MUSTER_ASSIGN_OR_RETURN(const auto response, Call(&Stub::ListDeadLetteredItems, request));
  return std::vector<uint64_t>(response.indexes().begin(), response.indexes().end());
}

absl::Status RemoteReportClient::CheckCompletion(uint64_t batch) {
  v1::CheckCompletionRequest request;
  request.set_batch(batch);
  return Call(&Stub::CheckCompletion, request).status();
}

absl::StatusOr<report::StoredReceipt> RemoteReportClient::GetReceipt(uint64_t batch) {
  v1::GetStoredReceiptRequest request;
  request.set_batch(batch);
  MUSTER_ASSIGN_OR_RETURN(const auto response, Call(&Stub::GetStoredReceipt, request));
  return report::StoredReceipt{response.text(), response.checksum()};
}

absl::StatusOr<report::Tally> RemoteReportClient::GetTally(uint64_t batch) {
  v1::GetTallyRequest request;
  request.set_batch(batch);
  MUSTER_ASSIGN_OR_RETURN(const auto response, Call(&Stub::GetTally, request));
  return report::FromProto(response);
}

absl::Status RemoteReportClient::ReopenDeadLettered(uint64_t batch,
                                                    absl::Span<const uint64_t> items) {
  v1::ReopenDeadLetteredRequest request;
  request.set_batch(batch);
  request.mutable_indexes()->Add(items.begin(), items.end());
  return Call(&Stub::ReopenDeadLettered, request).status();
}

absl::Status RemoteReportClient::CancelBatch(uint64_t batch,
                                             const report::Cancellation& cancellation) {
  v1::RecordCancellationRequest request;
  request.set_batch(batch);
  *request.mutable_cancelled() = base::ToProto(cancellation.when);
  request.set_reason(cancellation.reason);
  request.set_owner(cancellation.owner);
  return Call(&Stub::RecordCancellation, request).status();
}

absl::StatusOr<std::map<uint64_t, uint64_t>> RemoteReportClient::RetriedItems(
    uint64_t batch, absl::Span<const uint64_t> items) {
  v1::ListRetriedItemsRequest request;
  request.set_batch(batch);
  request.mutable_indexes()->Add(items.begin(), items.end());
  MUSTER_ASSIGN_OR_RETURN(const auto response, Call(&Stub::ListRetriedItems, request));
  std::map<uint64_t, uint64_t> retried;
  for (const v1::RetriedItem& item : response.items()) retried[item.item()] = item.retried_in();
  return retried;
}

absl::StatusOr<report::RetryClaims> RemoteReportClient::ClaimRejections(
    uint64_t batch, const report::RetrySelection& which, int64_t max) {
  v1::ClaimRejectionsRequest request;
  request.set_batch(batch);
  request.mutable_lines()->Add(which.lines.begin(), which.lines.end());
  request.mutable_items()->Add(which.items.begin(), which.items.end());
  request.set_dead_letters(!which.rejections_only);
  // An older controller would take a request that names items alone for one that asks for all.
  request.set_max(which.items.empty() ? static_cast<int32_t>(max) : 0);
  MUSTER_ASSIGN_OR_RETURN(const auto response, Call(&Stub::ClaimRejections, request));
  report::RetryClaims claimed;
  claimed.more = response.more();
  for (const v1::RetryClaim& claim : response.claims()) {
    claimed.claims.push_back(report::FromProto(claim));
  }
  return claimed;
}

absl::StatusOr<std::vector<report::RejectionPosition>> RemoteReportClient::ClaimedRejections(
    uint64_t batch, int64_t retry, const report::RejectionPosition& after, size_t max) {
  v1::ListClaimedRejectionsRequest request;
  request.set_batch(batch);
  request.set_retry(retry);
  request.mutable_after()->set_item(after.item);
  request.mutable_after()->set_line(after.line);
  request.set_max(MaxField(max));
  MUSTER_ASSIGN_OR_RETURN(const auto response, Call(&Stub::ListClaimedRejections, request));
  std::vector<report::RejectionPosition> positions;
  for (const v1::RejectionPosition& position : response.rejections()) {
    positions.push_back({position.item(), position.line()});
  }
  return positions;
}

absl::StatusOr<int64_t> RemoteReportClient::RecordRetry(
    uint64_t batch, int64_t retry, absl::Span<const report::RetriedTransaction> transactions,
    uint64_t retried_in) {
  v1::RecordRetryRequest request;
  request.set_batch(batch);
  request.set_retry(retry);
  for (const report::RetriedTransaction& one : transactions) {
    v1::RetriedTransaction* const added = request.add_transactions();
    added->set_item(one.item);
    added->set_line(one.line);
    added->set_retried_line(one.retried_line);
  }
  request.set_retried_in(retried_in);
  MUSTER_ASSIGN_OR_RETURN(const auto response, Call(&Stub::RecordRetry, request));
  return response.transactions();
}

absl::StatusOr<bool> RemoteReportClient::ForgetBatch(uint64_t batch) {
  v1::ForgetBatchRequest request;
  request.set_batch(batch);
  MUSTER_ASSIGN_OR_RETURN(const auto response, Call(&Stub::ForgetBatch, request));
  return response.done();
}

namespace {

// Turns the parts of an answer into visits, in order.
class PartReader {
 public:
  explicit PartReader(const report::RowVisitor* visitor) : visitor_(*visitor) {}

  absl::Status Take(const v1::GetReportResponse& response) {
    if (response.has_schema()) {
      MUSTER_ASSIGN_OR_RETURN(group_, report::FromProto(response.schema()));
      return visitor_.on_group(*group_);
    }
    if (!group_.has_value()) return absl::DataLossError("a report's rows came before their group");
    for (const v1::PartialRow& row : response.rows().rows()) {
      MUSTER_ASSIGN_OR_RETURN(const report::GroupRow decoded, report::FromProto(row, *group_));
      visitor_.on_row(decoded);
    }
    return absl::OkStatus();
  }

 private:
  const report::RowVisitor& visitor_;
  std::optional<report::GroupShape> group_;
};

}  // namespace

absl::Status ReadReport(const std::shared_ptr<grpc::Channel>& channel, const ReadRequest& request,
                        const report::RowVisitor& visitor) {
  v1::GetReportRequest wanted;
  wanted.set_batch(request.batch);
  wanted.set_group(request.group);
  wanted.set_max_rows(request.max_rows);
  rpc::CallContext context(request.timeout);
  const auto stub = v1::ReportService::NewStub(channel);
  const auto stream = stub->GetReport(&context, wanted);
  PartReader parts(&visitor);
  absl::Status taken;
  v1::GetReportResponse response;
  while (taken.ok() && stream->Read(&response)) taken = parts.Take(response);
  if (!taken.ok()) context.TryCancel();
  const absl::Status ended = rpc::FromGrpc(stream->Finish());
  return taken.ok() ? ended : taken;
}

}  // namespace muster::report::remote
