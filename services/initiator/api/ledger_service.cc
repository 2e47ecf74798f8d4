#include "services/initiator/api/ledger_service.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/proto_time.h"
#include "muster/base/status.h"
#include "muster/ledger/batch_proto.h"
#include "muster/queue/limits.h"
#include "muster/rpc/server.h"
#include "muster/rpc/status.h"
#include "muster/v1/batch.pb.h"

namespace muster::initiator::api {
namespace {

constexpr int kMaxItems = 4096;

// NotFound, too: the batch of this number is another initiator's.
absl::StatusOr<ledger::Batch> GetOwn(ledger::BatchLedger* ledger, uint64_t number) {
  absl::StatusOr<ledger::Batch> batch = ledger->Get(number);
  if (!batch.ok() || !batch->disowned) return batch;
  return absl::NotFoundError(absl::StrCat("batch ", number, " is another initiator's"));
}

}  // namespace

grpc::Status LedgerService::GetLedgerBatch(grpc::ServerContext* context,
                                           const v1::GetLedgerBatchRequest* request,
                                           v1::GetLedgerBatchResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    MUSTER_ASSIGN_OR_RETURN(const ledger::Batch batch, GetOwn(ledger_, request->batch()));
    *response->mutable_record() = ledger::RecordOf(batch);
    response->mutable_record()->clear_content();  // controllers do not need it to count
    *response->mutable_progress() = ledger::ProgressOf(batch);
    return absl::OkStatus();
  });
}

grpc::Status LedgerService::ListItems(grpc::ServerContext* context,
                                      const v1::ListItemsRequest* request,
                                      v1::ListItemsResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    if (request->max_items() < 1 || request->max_items() > kMaxItems) {
      return rpc::BadField("max_items", absl::StrCat("must be within 1 to ", kMaxItems));
    }
    MUSTER_RETURN_IF_ERROR(GetOwn(ledger_, request->batch()).status());
    MUSTER_ASSIGN_OR_RETURN(const std::vector<ledger::ItemBoundary> items,
                            ledger_->Items(request->batch(), request->first_index(),
                                           static_cast<size_t>(request->max_items())));
    ledger::AddTo(items, response->mutable_items());
    return absl::OkStatus();
  });
}

grpc::Status LedgerService::MarkComplete(grpc::ServerContext* context,
                                         const v1::MarkCompleteRequest* request,
                                         v1::MarkCompleteResponse*) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    MUSTER_RETURN_IF_ERROR(GetOwn(ledger_, request->batch()).status());
    MUSTER_RETURN_IF_ERROR(
        ledger_->MarkComplete(request->batch(), base::FromProto(request->completed())));
    on_complete_(request->batch());
    return absl::OkStatus();
  });
}

grpc::Status LedgerService::ReopenItems(grpc::ServerContext* context,
                                        const v1::ReopenItemsRequest* request,
                                        v1::ReopenItemsResponse*) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    if (request->items_size() > queue::kMaxListPoison) {
      return rpc::BadField("items", absl::StrCat("at most ", queue::kMaxListPoison));
    }
    MUSTER_RETURN_IF_ERROR(GetOwn(ledger_, request->batch()).status());
    return reopener_->Grant(request->batch(), request->items());
  });
}

grpc::Status LedgerService::FindRequest(grpc::ServerContext* context,
                                        const v1::FindRequestRequest* request,
                                        v1::FindRequestResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    if (!find_request_) return absl::FailedPreconditionError("this initiator is alone");
    MUSTER_ASSIGN_OR_RETURN(const uint64_t batch,
                            find_request_(request->directory(), request->request_id()));
    response->set_batch(batch);
    return absl::OkStatus();
  });
}

}  // namespace muster::initiator::api
