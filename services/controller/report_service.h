// ReportService: what a controller answers of its report (proto/muster/v1/report_service.proto).
#pragma once

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/sync_stream.h"
#include "muster/report/report_store.h"
#include "muster/report/store_desk.h"
#include "muster/v1/report_service.grpc.pb.h"

namespace muster::controller {

// Thread-safe.
class ReportService final : public v1::ReportService::Service {
 public:
  // `report` is not owned and outlives the service. The functions are called on the threads of
  // calls: `check_completion` answers at once; `begin_counting`, which may be empty, sees that the
  // job's results are counted from now on, and is called with each RegisterBatch.
  ReportService(report::ReportStore* report, std::function<void(uint64_t batch)> check_completion,
                std::function<absl::Status(const std::string& job)> begin_counting = {});

  grpc::Status GetReport(grpc::ServerContext* context, const v1::GetReportRequest* request,
                         grpc::ServerWriter<v1::GetReportResponse>* writer) override;
  grpc::Status ListRejections(grpc::ServerContext* context,
                              const v1::ListRejectionsRequest* request,
                              v1::ListRejectionsResponse* response) override;
  grpc::Status GetHighestBatch(grpc::ServerContext* context,
                               const v1::GetHighestBatchRequest* request,
                               v1::GetHighestBatchResponse* response) override;
  grpc::Status GetProgress(grpc::ServerContext* context, const v1::GetProgressRequest* request,
                           v1::GetProgressResponse* response) override;
  grpc::Status GetStoredReceipt(grpc::ServerContext* context,
                                const v1::GetStoredReceiptRequest* request,
                                v1::GetStoredReceiptResponse* response) override;
  grpc::Status GetTally(grpc::ServerContext* context, const v1::GetTallyRequest* request,
                        v1::GetTallyResponse* response) override;
  grpc::Status ListUncountedItems(grpc::ServerContext* context,
                                  const v1::ListUncountedItemsRequest* request,
                                  v1::ListUncountedItemsResponse* response) override;
  grpc::Status RegisterBatch(grpc::ServerContext* context, const v1::RegisterBatchRequest* request,
                             v1::RegisterBatchResponse* response) override;
  grpc::Status CheckCompletion(grpc::ServerContext* context,
                               const v1::CheckCompletionRequest* request,
                               v1::CheckCompletionResponse* response) override;
  grpc::Status ReopenDeadLettered(grpc::ServerContext* context,
                                  const v1::ReopenDeadLetteredRequest* request,
                                  v1::ReopenDeadLetteredResponse* response) override;

 private:
  report::ReportStore* const report_;  // not owned
  report::LocalReportClient report_client_;
  const std::function<absl::Status(const std::string& job)> begin_counting_;
};

}  // namespace muster::controller
