#include "muster/report/remote/remote_desk.h"

#include <algorithm>
#include <limits>

#include "muster/base/status_macros.h"
#include "muster/report/progress.h"
#include "muster/report/report_wire_tally.h"
#include "muster/report/schema.h"
#include "muster/rpc/channel.h"
#include "muster/rpc/status.h"

namespace muster::report::remote {

template <typename Request, typename Response>
absl::StatusOr<Response> RemoteReportClient::Call(grpc::Status (Stub::*method)(grpc::ClientContext*,
                                                                               const Request&,
                                                                               Response*),
                                                  const Request& request) {
  rpc::CallContext context(timeout_);
  Response response;
  MUSTER_RETURN_IF_ERROR(rpc::FromGrpc((stub_.get()->*method)(&context, request, &response)));
  return response;
}

absl::StatusOr<report::Progress> RemoteReportClient::RegisterBatch(
    const report::BatchShape& shape) {
  v1::RegisterBatchRequest request;
  request.set_batch(shape.batch);
  *request.mutable_schema() = report::ToProto(shape);
  MUSTER_ASSIGN_OR_RETURN(const auto response, Call(&Stub::RegisterBatch, request));
  return report::FromProto(response.progress());
}

absl::StatusOr<report::Progress> RemoteReportClient::GetProgress(uint64_t batch) {
  v1::GetProgressRequest request;
  request.set_batch(batch);
  MUSTER_ASSIGN_OR_RETURN(const auto response, Call(&Stub::GetProgress, request));
  return report::FromProto(response.progress());
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
  // Beyond what the field holds, it is too many all the same.
  constexpr size_t kMost = std::numeric_limits<int32_t>::max();
  v1::ListUncountedItemsRequest request;
  request.set_batch(batch);
  request.set_item_count(item_count);
  request.set_from(from);
  request.set_max(static_cast<int32_t>(std::min(max, kMost)));
  MUSTER_ASSIGN_OR_RETURN(const auto response, Call(&Stub::ListUncountedItems, request));
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

}  // namespace muster::report::remote
