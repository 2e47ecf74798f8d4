// SPDX-License-Identifier: Apache-2.0

// Retries: submits once more what failed of a batch (BatchService.RetryRejections): transactions
// that it rejected, and all of items that were given up.
//
//   failures (report) ──claim──► records of the batch's content ──► a batch of the same job
//                         ▲                                                    │
//                         └───────────── the claim names the batch ◄───────────┘
//
// The claim goes first, and the request id of the new batch is made of it. So a process that dies
// anywhere in between leaves a claim that the next call of the same transactions takes up, and a
// transaction is in one new batch at most.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/base/mutex.h"
#include "muster/job/job_registry.h"
#include "muster/ledger/batch_ledger.h"
#include "muster/queue/queue_store.h"
#include "muster/report/report_client.h"
#include "muster/report/retry.h"
#include "muster/v1/batch_service.pb.h"
#include "services/initiator/batch/record_reader.h"
#include "services/initiator/batch/scheduler.h"
#include "services/initiator/submit/submissions.h"
#include "services/initiator/submit/uploads.h"

namespace muster::initiator::api {

class RetriedContent;

// Calls hold a thread each while they read and write content.
inline constexpr int kMaxRetryCalls = 16;

// Thread-safe. Calls for the same batch go one after the other. A call holds one item at a time,
// and some hundred KiB of content.
class Retries {
 public:
  // Not owned.
  struct Dependencies {
    submit::Submissions* submissions = nullptr;
    batch::BatchScheduler* scheduler = nullptr;
    submit::Uploads* uploads = nullptr;
    ledger::BatchLedger* ledger = nullptr;
    report::ReportClient* report_client = nullptr;
    job::JobRegistry* jobs = nullptr;
    batch::RecordReader::OpenContent open_content = nullptr;
    queue::QueueStore* queues = nullptr;  // null: the poison of items that are retried stays there
    std::string account = {};             // of the jobs' queues
  };

  explicit Retries(Dependencies dependencies) : deps_(std::move(dependencies)) {}

  // Errors are those of BatchService.RetryRejections. Cancelled: `is_cancelled` said so; the next
  // call goes on.
  absl::StatusOr<v1::RetryRejectionsResponse> Retry(const v1::RetryRejectionsRequest& request,
                                                    const std::function<bool()>& is_cancelled)
      ABSL_LOCKS_EXCLUDED(mu_);

 private:
  class Attempt;

  absl::StatusOr<v1::RetryRejectionsResponse> RetryHeld(uint64_t batch,
                                                        const report::RetrySelection& which,
                                                        const std::function<bool()>& is_cancelled);
  void DropPoison(const ledger::Batch& batch, const std::vector<uint64_t>& items);
  absl::Status NotRejected(const absl::Status& refused, const std::vector<int64_t>& lines,
                           RetriedContent* content);
  // Submits the transactions of a claim, and tells the report. Returns the batch that has them; 0:
  // none of them can be. Sets how many it has.
  absl::StatusOr<uint64_t> Submit(RetriedContent* content, report::RetryClaim* claim,
                                  const std::function<bool()>& is_cancelled);
  // The batch that an earlier call has begun; nullopt: none has.
  absl::StatusOr<std::optional<ledger::Batch>> FindBegun(const std::string& tenant,
                                                         const std::string& request_id);
  // Frees what a batch retries that was deleted while it was told to the report.
  absl::Status CheckThere(uint64_t batch);

  const Dependencies deps_;
  base::KeyedMutex batches_;
  base::Mutex mu_;
  int calls_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace muster::initiator::api
