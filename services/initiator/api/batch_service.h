// BatchService: takes batches in and tells where they stand (proto/muster/v1/batch_service.proto).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/sync_stream.h"
#include "muster/base/clock.h"
#include "muster/ledger/batch_ledger.h"
#include "muster/report/counting_desk.h"
#include "muster/v1/batch_service.grpc.pb.h"
#include "services/initiator/api/quotes.h"
#include "services/initiator/batch/batch_keeper.h"
#include "services/initiator/batch/uploads.h"
#include "services/initiator/submit/submissions.h"

namespace muster::initiator::api {

// Thread-safe.
class BatchService final : public v1::BatchService::Service {
 public:
  // Not owned.
  struct Dependencies {
    initiator::submit::Submissions* submissions = nullptr;
    initiator::batch::BatchScheduler* scheduler = nullptr;
    initiator::batch::Uploads* uploads = nullptr;
    ledger::BatchLedger* ledger = nullptr;
    report::ReportClient* report_client = nullptr;
    base::Clock* clock = nullptr;
    // The instances of the processors that are there; empty: nobody knows.
    std::function<std::vector<std::string>()> processors = nullptr;
    Quotes* quotes = nullptr;
  };

  explicit BatchService(const Dependencies& dependencies) : deps_(dependencies) {}

  // Ends the watches that run and refuses new ones, so that a drain need not wait for them.
  void StopWatches() { stopping_ = true; }

  grpc::Status Submit(
      grpc::ServerContext* context,
      grpc::ServerReaderWriter<v1::SubmitResponse, v1::SubmitRequest>* stream) override;
  grpc::Status GetBatch(grpc::ServerContext* context, const v1::GetBatchRequest* request,
                        v1::GetBatchResponse* response) override;
  grpc::Status ListBatches(grpc::ServerContext* context, const v1::ListBatchesRequest* request,
                           v1::ListBatchesResponse* response) override;
  grpc::Status WatchBatch(grpc::ServerContext* context, const v1::WatchBatchRequest* request,
                          grpc::ServerWriter<v1::WatchBatchResponse>* writer) override;
  grpc::Status CancelBatch(grpc::ServerContext* context, const v1::CancelBatchRequest* request,
                           v1::CancelBatchResponse* response) override;
  grpc::Status Quote(grpc::ServerContext* context, const v1::QuoteRequest* request,
                     v1::QuoteResponse* response) override;
  grpc::Status GetReceipt(grpc::ServerContext* context, const v1::GetReceiptRequest* request,
                          v1::GetReceiptResponse* response) override;

 private:
  absl::Status List(const v1::ListBatchesRequest& request, v1::ListBatchesResponse* response);
  absl::Status Watch(grpc::ServerContext* context, const v1::WatchBatchRequest& request,
                     grpc::ServerWriter<v1::WatchBatchResponse>* writer);
  absl::StatusOr<report::StoredReceipt> Receipt(uint64_t batch);
  absl::StatusOr<report::StoredReceipt> ReceiptOfCancelled(const ledger::Batch& batch);
  // The batch's status, as its next revision.
  absl::StatusOr<v1::BatchStatus> StatusOf(uint64_t batch) const;

  const Dependencies deps_;
  std::atomic<bool> stopping_ = false;
};

}  // namespace muster::initiator::api
