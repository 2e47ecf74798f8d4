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
#include "muster/item/cancelled_receipt.h"
#include "muster/item/queue_names.h"
#include "muster/ledger/batch_proto.h"
#include "muster/rpc/limits.h"
#include "muster/rpc/paging.h"
#include "muster/rpc/server.h"
#include "muster/rpc/status.h"
#include "muster/scaling/policy/quote_proto.h"
#include "muster/v1/batch.pb.h"
#include "services/initiator/api/submit_call.h"
#include "services/initiator/batch/status.h"

namespace muster::initiator::api {

namespace {

constexpr size_t kMaxReasonBytes = 256;
// Batches that are read for one page. A page of batches that are rare may have fewer than it could,
// so that one call never reads a whole ledger.
constexpr size_t kMaxReadForPage = 10'000;
// CancelBatch answers how many processors have acknowledged it. Live processors acknowledge at
// once.
constexpr absl::Duration kAcknowledgePatience = absl::Seconds(2);

bool IsWanted(const ledger::Batch& batch, const v1::ListBatchesRequest& request) {
  if (!request.job().empty() && batch.job != request.job()) return false;
  if (!request.tenant().empty() && batch.tenant != request.tenant()) return false;
  const v1::BatchState state = ledger::ProgressOf(batch).state();
  return request.states().empty() || std::find(request.states().begin(), request.states().end(),
                                               state) != request.states().end();
}

// Whether the request wants no batch that has ended.
bool WantsOpenAlone(const v1::ListBatchesRequest& request) {
  const auto open = [](int state) {
    return state == v1::BATCH_STATE_OPEN || state == v1::BATCH_STATE_SEALED;
  };
  return !request.states().empty() &&
         std::all_of(request.states().begin(), request.states().end(), open);
}

}  // namespace

BatchService::BatchService(const Dependencies& dependencies)
    : deps_(dependencies),
      uploads_("uploads", kUploadLimits, dependencies.clock),
      watches_(
          {[this](uint64_t batch) { return StatusOf(batch); },
           [this](uint64_t* seen, absl::Duration deadline) {
             deps_.scheduler->AwaitNews(seen, deadline);
           },
           [this] { deps_.scheduler->Announce(); }},
          [this](grpc::ServerContext* context, v1::WatchBatchRequest* request,
                 BatchWatches::Writer* writer, grpc::ServerCompletionQueue* queue,
                 void* tag) { RequestWatchBatch(context, request, writer, queue, queue, tag); },
          dependencies.clock) {}

absl::StatusOr<v1::BatchStatus> BatchService::StatusOf(uint64_t batch) const {
  const absl::StatusOr<batch::BatchStatus> batch_status = deps_.scheduler->Get(batch);
  if (absl::IsNotFound(batch_status.status())) return NotHere(batch, batch_status.status());
  MUSTER_RETURN_IF_ERROR(batch_status.status());
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
    MUSTER_ASSIGN_OR_RETURN(ledger::BatchPage wanted,
                            WantsOpenAlone(*request)
                                ? ListWantedOpen(*request, below, static_cast<size_t>(*page))
                                : ListWanted(*request, below, static_cast<size_t>(*page)));
    MUSTER_ASSIGN_OR_RETURN(const std::vector<batch::BatchStatus> statuses,
                            deps_.scheduler->StatusesOf(std::move(wanted.batches)));
    const absl::Time now = deps_.clock->Now();
    for (const batch::BatchStatus& status : statuses) {
      *response->add_batches() =
          batch::StatusOf(status, static_cast<uint64_t>(absl::ToUnixMicros(now)), now);
    }
    if (wanted.next_below != 0) response->set_next_page_token(absl::StrCat(wanted.next_below));
    return absl::OkStatus();
  });
}

absl::StatusOr<ledger::BatchPage> BatchService::ListWanted(const v1::ListBatchesRequest& request,
                                                           uint64_t below, size_t max) const {
  ledger::BatchPage wanted;
  wanted.next_below = below;
  size_t read = 0;
  while (wanted.next_below != 0 && wanted.batches.size() < max && read < kMaxReadForPage) {
    const size_t missing = max - wanted.batches.size();
    MUSTER_ASSIGN_OR_RETURN(ledger::BatchPage page,
                            deps_.ledger->ListBelow(wanted.next_below, missing));
    wanted.next_below = page.next_below;
    read += missing;
    for (ledger::Batch& batch : page.batches) {
      if (IsWanted(batch, request)) wanted.batches.push_back(std::move(batch));
    }
  }
  return wanted;
}

absl::StatusOr<ledger::BatchPage> BatchService::ListWantedOpen(
    const v1::ListBatchesRequest& request, uint64_t below, size_t max) const {
  ledger::BatchPage wanted;
  MUSTER_ASSIGN_OR_RETURN(const std::vector<uint64_t> open, deps_.ledger->ListOpen());
  for (auto number = open.rbegin(); number != open.rend(); ++number) {
    if (*number >= below) continue;
    if (wanted.batches.size() == max) {
      wanted.next_below = wanted.batches.back().number;
      break;
    }
    absl::StatusOr<ledger::Batch> batch = deps_.ledger->Get(*number);
    if (!batch.ok()) continue;  // its problem is logged where it is stepped
    batch->content.clear();
    if (IsWanted(*batch, request)) wanted.batches.push_back(*std::move(batch));
  }
  return wanted;
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
      absl::StrCat("batch ", number, " is ", BatchStateName(batch.state), ": ",
                   batch_status.counted.items(), " of its ", batch.items, " items are counted"));
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

namespace {

constexpr int64_t kMaxQuotedTransactions = 10'000'000'000;

absl::Status ValidateQuote(const v1::QuoteRequest& request) {
  if (request.job().empty()) return rpc::BadField("job", "must not be empty");
  if (request.transactions() < 1 || request.transactions() > kMaxQuotedTransactions) {
    return rpc::BadField("transactions",
                         absl::StrCat("must be within 1 to ", kMaxQuotedTransactions));
  }
  if (request.has_sla() && base::FromProto(request.sla()) <= absl::ZeroDuration()) {
    return rpc::BadField("sla", "must be above 0");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<v1::QuoteResponse> Quotes::Quote(const v1::QuoteRequest& request,
                                                absl::Duration timeout) {
  MUSTER_RETURN_IF_ERROR(ValidateQuote(request));
  MUSTER_ASSIGN_OR_RETURN(const job::JobDefinition job, jobs_->GetDefinition(request.job()));
  const int64_t per_item = job.item.transactions;
  v1::SimulateRequest simulate;
  // All partitions belong to the target of the first one.
  simulate.set_queue(item::InputQueue(account_, job.name, 0).name);
  simulate.set_items((request.transactions() + per_item - 1) / per_item);
  if (request.has_sla()) *simulate.mutable_sla() = request.sla();
  auto simulated =
      agent_->Unary<v1::SimulateResponse>(&v1::ScalingService::Stub::Simulate, simulate, timeout);
  MUSTER_RETURN_IF_ERROR(base::Annotate(simulated.status(), absl::StrCat("job '", job.name, "'")));
  return scaling::policy::QuoteOf(*std::move(simulated), simulate.items());
}

}  // namespace muster::initiator::api
