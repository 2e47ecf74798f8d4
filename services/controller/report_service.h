// SPDX-License-Identifier: Apache-2.0

// ReportService, and the functions that split its long answers into messages within gRPC's limit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/sync_stream.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/report/report_client.h"
#include "muster/report/report_store.h"
#include "muster/rpc/stream_limiter.h"
#include "muster/v1/report_service.grpc.pb.h"
#include "muster/v1/report_service.pb.h"
#include "services/controller/report_spool.h"

namespace muster::controller {

// Reports that are being read at a time: each holds a thread, and up to ReportSpool::kMemoryBytes.
// A reader that takes nothing for a minute is left, and so is one that takes nothing for a second
// when another needs its place.
inline constexpr rpc::StreamLimits kReportLimits = {
    .max_streams = 32,
    .max_idle = absl::Minutes(1),
    .yields_after = absl::Seconds(1),
};

// ReportService: serves a controller's report (proto/muster/v1/report_service.proto).

// Thread-safe.
class ReportService final : public v1::ReportService::Service {
 public:
  // Starts to count the job's results, if they are not counted yet; `batch` is registered.
  using BeginCounting = std::function<absl::Status(const std::string& job, uint64_t batch)>;

  // `report` is not owned and outlives the service. The service calls the functions on the threads
  // of its RPCs. `check_completion` is as LocalReportClient has it. Each RegisterBatch calls
  // `begin_counting`, which may be empty. A long report waits for its reader in `spool_folder`, as
  // ReportSpool has it.
  explicit ReportService(report::ReportStore* report,
                         std::function<absl::Status(uint64_t batch)> check_completion = {},
                         BeginCounting begin_counting = {}, std::string spool_folder = "");

  grpc::Status GetReport(grpc::ServerContext* context, const v1::GetReportRequest* request,
                         grpc::ServerWriter<v1::GetReportResponse>* writer) override;
  grpc::Status ListRejections(grpc::ServerContext* context,
                              const v1::ListRejectionsRequest* request,
                              v1::ListRejectionsResponse* response) override;
  grpc::Status ListDeadLetters(grpc::ServerContext* context,
                               const v1::ListDeadLettersRequest* request,
                               v1::ListDeadLettersResponse* response) override;
  grpc::Status GetOutput(grpc::ServerContext* context, const v1::GetOutputRequest* request,
                         v1::GetOutputResponse* response) override;
  grpc::Status GetHighestBatch(grpc::ServerContext* context,
                               const v1::GetHighestBatchRequest* request,
                               v1::GetHighestBatchResponse* response) override;
  grpc::Status GetProgress(grpc::ServerContext* context, const v1::GetProgressRequest* request,
                           v1::GetProgressResponse* response) override;
  grpc::Status ListProgress(grpc::ServerContext* context, const v1::ListProgressRequest* request,
                            v1::ListProgressResponse* response) override;
  grpc::Status GetStoredReceipt(grpc::ServerContext* context,
                                const v1::GetStoredReceiptRequest* request,
                                v1::GetStoredReceiptResponse* response) override;
  grpc::Status GetTally(grpc::ServerContext* context, const v1::GetTallyRequest* request,
                        v1::GetTallyResponse* response) override;
  grpc::Status ListUncountedItems(grpc::ServerContext* context,
                                  const v1::ListUncountedItemsRequest* request,
                                  v1::ListUncountedItemsResponse* response) override;
  grpc::Status ListDeadLetteredItems(grpc::ServerContext* context,
                                     const v1::ListDeadLetteredItemsRequest* request,
                                     v1::ListDeadLetteredItemsResponse* response) override;
  grpc::Status RegisterBatch(grpc::ServerContext* context, const v1::RegisterBatchRequest* request,
                             v1::RegisterBatchResponse* response) override;
  grpc::Status CheckCompletion(grpc::ServerContext* context,
                               const v1::CheckCompletionRequest* request,
                               v1::CheckCompletionResponse* response) override;
  grpc::Status ReopenDeadLettered(grpc::ServerContext* context,
                                  const v1::ReopenDeadLetteredRequest* request,
                                  v1::ReopenDeadLetteredResponse* response) override;
  grpc::Status RecordCancellation(grpc::ServerContext* context,
                                  const v1::RecordCancellationRequest* request,
                                  v1::RecordCancellationResponse* response) override;
  grpc::Status ListRetriedItems(grpc::ServerContext* context,
                                const v1::ListRetriedItemsRequest* request,
                                v1::ListRetriedItemsResponse* response) override;
  grpc::Status ClaimRejections(grpc::ServerContext* context,
                               const v1::ClaimRejectionsRequest* request,
                               v1::ClaimRejectionsResponse* response) override;
  grpc::Status ListClaimedRejections(grpc::ServerContext* context,
                                     const v1::ListClaimedRejectionsRequest* request,
                                     v1::ListClaimedRejectionsResponse* response) override;
  grpc::Status RecordRetry(grpc::ServerContext* context, const v1::RecordRetryRequest* request,
                           v1::RecordRetryResponse* response) override;
  grpc::Status ForgetBatch(grpc::ServerContext* context, const v1::ForgetBatchRequest* request,
                           v1::ForgetBatchResponse* response) override;

 private:
  // Reads the whole report that `request` asks for.
  absl::Status Spool(const v1::GetReportRequest& request, ReportSpool* spool);

  // Logs what keeps batches from being registered, such as a full disk, once in kTellAgain:
  // initiators try again and again, for each of their batches.
  void TellUnregistered(uint64_t batch, const absl::Status& why) ABSL_LOCKS_EXCLUDED(mu_);

  report::ReportStore* const report_;  // not owned
  report::LocalReportClient report_client_;
  const BeginCounting begin_counting_;
  const std::string spool_folder_;
  rpc::StreamLimiter readers_{"reports", kReportLimits, base::RealClock()};
  base::Mutex mu_;
  absl::Duration tell_at_ ABSL_GUARDED_BY(mu_);  // monotonic
};

}  // namespace muster::controller
