// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/api/batch_service.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "muster/base/log.h"
#include "muster/base/proto_time.h"
#include "muster/base/status.h"
#include "muster/item/batch_filter.h"
#include "muster/item/cancelled_receipt.h"
#include "muster/ledger/batch_proto.h"
#include "muster/rpc/limits.h"
#include "muster/rpc/paging.h"
#include "muster/rpc/server.h"
#include "muster/rpc/status.h"
#include "muster/v1/batch.pb.h"
#include "services/initiator/api/submit_call.h"
#include "services/initiator/batch/read_records.h"
#include "services/initiator/batch/status.h"

namespace muster::initiator::api {

namespace {

constexpr size_t kMaxReasonBytes = 256;
// Longer than two heartbeats: until then, processors of a server that has just started are not
// heard.
constexpr absl::Duration kWatchPatience = absl::Seconds(5);
// CancelBatch answers how many processors have acknowledged it. Live processors acknowledge at
// once.
constexpr absl::Duration kAcknowledgePatience = absl::Seconds(2);

ledger::BatchState StateOf(int state) {
  switch (state) {
    case v1::BATCH_STATE_SEALED:
      return ledger::BatchState::kSealed;
    case v1::BATCH_STATE_COMPLETE:
      return ledger::BatchState::kComplete;
    case v1::BATCH_STATE_CANCELLED:
      return ledger::BatchState::kCancelled;
    default:
      return ledger::BatchState::kOpen;
  }
}

absl::StatusOr<item::BatchFilter> FilterOf(const v1::ListBatchesRequest& request) {
  item::BatchFilter filter;
  filter.job = request.job();
  filter.tenant = request.tenant();
  for (const int state : request.states()) {
    if (state < v1::BATCH_STATE_OPEN || state > v1::BATCH_STATE_CANCELLED) {
      return rpc::BadField("states", "has one that no batch can be in");
    }
    filter.states.insert(StateOf(state));
  }
  if (request.has_since()) filter.since = base::FromProto(request.since());
  filter.late = request.late();
  filter.hides_calls = !request.calls();
  filter.labels = {request.labels().begin(), request.labels().end()};
  if (const absl::Status fault = item::CheckLabels(filter.labels); !fault.ok()) {
    return rpc::BadField("labels", fault.message());
  }
  return filter;
}

}  // namespace

BatchService::BatchService(const Dependencies& dependencies)
    : deps_(dependencies),
      uploads_("uploads", kUploadLimits, dependencies.clock),
      retries_({dependencies.submissions, dependencies.scheduler, dependencies.uploads,
                dependencies.ledger, dependencies.report_client, dependencies.jobs,
                dependencies.open_content, dependencies.queues, dependencies.account}),
      watches_(
          {[this](uint64_t batch) { return StatusOf(batch, kWatchPatience); },
           [this](uint64_t* seen, absl::Duration deadline) {
             deps_.scheduler->AwaitNews(seen, deadline);
           },
           [this] { deps_.scheduler->Announce(); }},
          [this](grpc::ServerContext* context, v1::WatchBatchRequest* request,
                 BatchWatches::Writer* writer, grpc::ServerCompletionQueue* queue,
                 void* tag) { RequestWatchBatch(context, request, writer, queue, queue, tag); },
          dependencies.clock) {}

absl::StatusOr<v1::BatchStatus> BatchService::StatusOf(uint64_t batch,
                                                       absl::Duration patience) const {
  absl::StatusOr<batch::BatchStatus> batch_status = deps_.scheduler->Get(batch);
  if (absl::IsNotFound(batch_status.status())) return NotHere(batch, batch_status.status());
  MUSTER_RETURN_IF_ERROR(batch_status.status());
  if (deps_.wait_reasons != nullptr) deps_.wait_reasons->Explain(&*batch_status, patience);
  const absl::Time now = deps_.clock->Now();
  return batch::StatusOf(*batch_status, static_cast<uint64_t>(absl::ToUnixMicros(now)), now);
}

// The ledger lies with one initiator, the report does not.
absl::Status BatchService::NotHere(uint64_t batch, const absl::Status& unknown) const {
  const absl::StatusOr<report::Progress> counted = deps_.report_client->GetProgress(batch);
  if (!counted.ok()) return unknown;
  return absl::NotFoundError(
      absl::StrCat("this initiator has no ledger of batch ", batch, ", but the report has ",
                   counted->transactions, " transactions of it, of job '", counted->job,
                   "': another initiator has the ledger, or it is lost with its data directory; "
                   "`muster report ",
                   batch, "` shows what is counted"));
}

grpc::Status BatchService::Submit(
    grpc::ServerContext* context,
    grpc::ServerReaderWriter<v1::SubmitResponse, v1::SubmitRequest>* stream) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    MUSTER_ASSIGN_OR_RETURN(
        const std::unique_ptr<rpc::StreamLimiter::Place> place,
        uploads_.Admit([context](const absl::Status& why) { rpc::EndCall(context, why); }));
    SubmitCall call({deps_.submissions, deps_.scheduler, deps_.uploads, deps_.clock}, place.get(),
                    context, stream);
    MUSTER_RETURN_IF_ERROR(call.Run());
    v1::SubmitResponse response;
    MUSTER_ASSIGN_OR_RETURN(*response.mutable_sealed()->mutable_status(), StatusOf(call.batch()));
    // The batch is submitted even if this answer does not arrive.
    (void)stream->Write(response);
    return absl::OkStatus();
  });
}

grpc::Status BatchService::GetBatch(grpc::ServerContext* context,
                                    const v1::GetBatchRequest* request,
                                    v1::GetBatchResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    MUSTER_ASSIGN_OR_RETURN(*response->mutable_status(), StatusOf(request->batch()));
    return absl::OkStatus();
  });
}

grpc::Status BatchService::ListBatches(grpc::ServerContext* context,
                                       const v1::ListBatchesRequest* request,
                                       v1::ListBatchesResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    const std::optional<int> page = rpc::PageSize(request->page_size());
    if (!page.has_value()) {
      return rpc::BadField("page_size", absl::StrCat("must be within 0 to ", rpc::kMaxPageSize));
    }
    // A token is the number of the last batch of the page before.
    uint64_t below = std::numeric_limits<uint64_t>::max();
    if (!request->page_token().empty() && !absl::SimpleAtoi(request->page_token(), &below)) {
      return rpc::BadField("page_token", "is none of a response");
    }
    MUSTER_ASSIGN_OR_RETURN(const item::BatchFilter filter, FilterOf(*request));
    const absl::Time now = deps_.clock->Now();
    const auto max = static_cast<size_t>(*page);
    MUSTER_ASSIGN_OR_RETURN(ledger::BatchPage wanted,
                            request->removal_problem()
                                ? deps_.scheduler->FindRemovalProblems(filter, below, max)
                                : item::FindBatches(*deps_.ledger, filter, below, max, now));
    MUSTER_ASSIGN_OR_RETURN(std::vector<batch::BatchStatus> statuses,
                            deps_.scheduler->StatusesOf(std::move(wanted.batches)));
    for (batch::BatchStatus& status : statuses) {
      if (deps_.wait_reasons != nullptr) deps_.wait_reasons->Explain(&status);
      *response->add_batches() =
          batch::StatusOf(status, static_cast<uint64_t>(absl::ToUnixMicros(now)), now);
    }
    if (wanted.next_below != 0) response->set_next_page_token(absl::StrCat(wanted.next_below));
    return absl::OkStatus();
  });
}

grpc::Status BatchService::ReadRecords(grpc::ServerContext* context,
                                       const v1::ReadRecordsRequest* request,
                                       v1::ReadRecordsResponse* response) {
  return rpc::Answer(*context, [&] {
    return batch::ReadRecords(*request, deps_.ledger, deps_.open_content, response);
  });
}

grpc::Status BatchService::RetryRejections(grpc::ServerContext* context,
                                           const v1::RetryRejectionsRequest* request,
                                           v1::RetryRejectionsResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    MUSTER_ASSIGN_OR_RETURN(*response,
                            retries_.Retry(*request, [context] { return context->IsCancelled(); }));
    return absl::OkStatus();
  });
}

grpc::Status BatchService::CancelBatch(grpc::ServerContext* context,
                                       const v1::CancelBatchRequest* request,
                                       v1::CancelBatchResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    if (request->reason().size() > kMaxReasonBytes) {
      return rpc::BadField("reason", absl::StrCat("must have at most ", kMaxReasonBytes, " bytes"));
    }
    const auto processors = deps_.processors ? deps_.processors() : std::vector<std::string>();
    MUSTER_ASSIGN_OR_RETURN(const int acknowledged,
                            deps_.scheduler->Cancel(request->batch(), request->reason(), processors,
                                                    kAcknowledgePatience));
    response->set_processors(static_cast<int>(processors.size()));
    response->set_acknowledged(acknowledged);
    base::Log(base::kInfo, "a batch is cancelled on request",
              {{"batch", request->batch()}, {"reason", request->reason()}});
    MUSTER_ASSIGN_OR_RETURN(*response->mutable_status(), StatusOf(request->batch()));
    return absl::OkStatus();
  });
}

grpc::Status BatchService::DeleteBatch(grpc::ServerContext* context,
                                       const v1::DeleteBatchRequest* request,
                                       v1::DeleteBatchResponse*) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    MUSTER_RETURN_IF_ERROR(deps_.scheduler->Delete(request->batch()));
    base::Log(base::kInfo, "a batch is deleted on request", {{"batch", request->batch()}});
    return absl::OkStatus();
  });
}

grpc::Status BatchService::Quote(grpc::ServerContext* context, const v1::QuoteRequest* request,
                                 v1::QuoteResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    const absl::Duration left = absl::FromChrono(context->deadline()) - absl::Now();
    MUSTER_ASSIGN_OR_RETURN(
        *response, deps_.quotes->Quote(*request, std::min(left, rpc::kDefaultCallTimeout)));
    return absl::OkStatus();
  });
}

grpc::Status BatchService::GetReceipt(grpc::ServerContext* context,
                                      const v1::GetReceiptRequest* request,
                                      v1::GetReceiptResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    MUSTER_ASSIGN_OR_RETURN(report::StoredReceipt receipt, Receipt(request->batch()));
    response->set_text(std::move(receipt.text));
    response->set_checksum(std::move(receipt.checksum));
    return absl::OkStatus();
  });
}

absl::StatusOr<report::StoredReceipt> BatchService::Receipt(uint64_t number) {
  MUSTER_ASSIGN_OR_RETURN(const batch::BatchStatus batch_status, deps_.scheduler->Get(number));
  const ledger::Batch& batch = batch_status.batch;
  if (batch.state == ledger::BatchState::kComplete) return deps_.report_client->GetReceipt(number);
  if (batch.state == ledger::BatchState::kCancelled) return ReceiptOfCancelled(batch);
  return absl::FailedPreconditionError(
      absl::StrCat("batch ", number, " is ", BatchStateName(batch.state),
                   ": it has no receipt before it is complete; ", batch_status.counted.items(),
                   " of its ", batch.items, " items are counted"));
}

absl::StatusOr<report::StoredReceipt> BatchService::ReceiptOfCancelled(const ledger::Batch& batch) {
  const absl::Time now = deps_.clock->Now();
  absl::StatusOr<report::Tally> tally = report::EmptyTally(batch.number);
  // What the report has under a disowned number is not this batch's.
  if (!batch.disowned) tally = deps_.report_client->GetTally(batch.number);
  if (absl::IsNotFound(tally.status())) tally = report::EmptyTally(batch.number);
  MUSTER_RETURN_IF_ERROR(tally.status());
  return item::CancelledReceipt(batch, *tally, now);
}

}  // namespace muster::initiator::api
