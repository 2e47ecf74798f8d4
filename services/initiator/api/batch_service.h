// SPDX-License-Identifier: Apache-2.0

// BatchService: takes batches in and reports their status (proto/muster/v1/batch_service.proto).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/sync_stream.h"
#include "muster/base/clock.h"
#include "muster/job/job_registry.h"
#include "muster/ledger/batch_ledger.h"
#include "muster/queue/queue_store.h"
#include "muster/report/report_client.h"
#include "muster/rpc/limits.h"
#include "muster/rpc/server.h"
#include "muster/rpc/stream_limiter.h"
#include "muster/v1/batch_service.grpc.pb.h"
#include "muster/v1/batch_service.pb.h"
#include "services/initiator/api/batch_watches.h"
#include "services/initiator/api/quotes.h"
#include "services/initiator/api/retries.h"
#include "services/initiator/api/wait_reasons.h"
#include "services/initiator/batch/record_reader.h"
#include "services/initiator/batch/scheduler.h"
#include "services/initiator/submit/submissions.h"
#include "services/initiator/submit/uploads.h"

namespace muster::initiator::api {

// Uploads hold a thread each while they arrive: three of eight of a server's threads at most. With
// reads of events that wait (stream_service.h) and readers of content (ledger_service.h), a fifth
// of the threads is left for calls that are soon over. One whose
// client sends nothing for a minute ends, and so does one that is idle for a second when another
// needs its place; both may be resumed.
inline constexpr rpc::StreamLimits kUploadLimits = {
    .max_streams = rpc::kMaxCallThreads * 3 / 8,
    .max_idle = absl::Minutes(1),
    .yields_after = absl::Seconds(1),
};

// Thread-safe.
class BatchService final
    : public v1::BatchService::WithAsyncMethod_WatchBatch<v1::BatchService::Service> {
 public:
  // Not owned.
  struct Dependencies {
    submit::Submissions* submissions = nullptr;
    batch::BatchScheduler* scheduler = nullptr;
    submit::Uploads* uploads = nullptr;
    ledger::BatchLedger* ledger = nullptr;
    report::ReportClient* report_client = nullptr;
    base::Clock* clock = nullptr;
    // The instance names of the live processors; empty: the initiator knows of none.
    std::function<std::vector<std::string>()> processors = nullptr;
    Quotes* quotes = nullptr;
    WaitReasons* wait_reasons = nullptr;  // null: it says of no batch why nothing is done for it
    // Opens the content of a batch, to read records of it again.
    batch::RecordReader::OpenContent open_content = nullptr;
    job::JobRegistry* jobs = nullptr;  // of those whose failures are retried
    // With the poison of these, which goes once it is retried; null: it stays.
    queue::QueueStore* queues = nullptr;
    std::string account = {};  // of the queues
  };

  explicit BatchService(const Dependencies& dependencies);

  // The WatchBatch calls, for the server.
  rpc::QueuedCalls* watches() { return &watches_; }
  // Ends the running WatchBatch calls and takes no new ones, so that a drain need not wait for
  // them.
  void StopWatches() { watches_.Drain(); }

  grpc::Status Submit(
      grpc::ServerContext* context,
      grpc::ServerReaderWriter<v1::SubmitResponse, v1::SubmitRequest>* stream) override;
  grpc::Status GetBatch(grpc::ServerContext* context, const v1::GetBatchRequest* request,
                        v1::GetBatchResponse* response) override;
  grpc::Status ListBatches(grpc::ServerContext* context, const v1::ListBatchesRequest* request,
                           v1::ListBatchesResponse* response) override;
  grpc::Status CancelBatch(grpc::ServerContext* context, const v1::CancelBatchRequest* request,
                           v1::CancelBatchResponse* response) override;
  grpc::Status DeleteBatch(grpc::ServerContext* context, const v1::DeleteBatchRequest* request,
                           v1::DeleteBatchResponse* response) override;
  grpc::Status Quote(grpc::ServerContext* context, const v1::QuoteRequest* request,
                     v1::QuoteResponse* response) override;
  grpc::Status GetReceipt(grpc::ServerContext* context, const v1::GetReceiptRequest* request,
                          v1::GetReceiptResponse* response) override;
  grpc::Status ReadRecords(grpc::ServerContext* context, const v1::ReadRecordsRequest* request,
                           v1::ReadRecordsResponse* response) override;
  grpc::Status RetryRejections(grpc::ServerContext* context,
                               const v1::RetryRejectionsRequest* request,
                               v1::RetryRejectionsResponse* response) override;

 private:
  absl::StatusOr<report::StoredReceipt> Receipt(uint64_t batch);
  absl::StatusOr<report::StoredReceipt> ReceiptOfCancelled(const ledger::Batch& batch);
  // The batch's status, as its next revision. `patience` is that of WaitReasons.
  absl::StatusOr<v1::BatchStatus> StatusOf(uint64_t batch,
                                           absl::Duration patience = absl::ZeroDuration()) const;
  // The error for a batch that the ledger does not have, with what the report knows of it.
  absl::Status NotHere(uint64_t batch, const absl::Status& unknown) const;

  const Dependencies deps_;
  rpc::StreamLimiter uploads_;
  Retries retries_;
  BatchWatches watches_;  // last: it uses the others
};

}  // namespace muster::initiator::api
