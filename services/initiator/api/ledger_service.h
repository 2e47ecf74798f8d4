// LedgerService: gives controllers and other initiators access to this initiator's ledger
// (proto/muster/v1/ledger_service.proto).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "grpcpp/server_context.h"
#include "muster/item/redrive.h"
#include "muster/ledger/batch_ledger.h"
#include "muster/v1/ledger_service.grpc.pb.h"

namespace muster::initiator::api {

// Thread-safe.
class LedgerService final : public v1::LedgerService::Service {
 public:
  // Answers FindRequest, with its statuses; empty: this initiator claims no request ids.
  using FindRequestBatch = std::function<absl::StatusOr<uint64_t>(const std::string& directory,
                                                                  const std::string& request_id)>;

  // `ledger` and `reopener`, which reopens batches of `ledger`, are not owned. The service calls
  // `on_complete` with each batch that a controller marks complete, on the thread of that RPC.
  LedgerService(ledger::BatchLedger* ledger, item::BatchReopener* reopener,
                std::function<void(uint64_t batch)> on_complete,
                FindRequestBatch find_request = nullptr)
      : ledger_(ledger),
        reopener_(reopener),
        on_complete_(std::move(on_complete)),
        find_request_(std::move(find_request)) {}

  grpc::Status GetLedgerBatch(grpc::ServerContext* context,
                              const v1::GetLedgerBatchRequest* request,
                              v1::GetLedgerBatchResponse* response) override;
  grpc::Status ListItems(grpc::ServerContext* context, const v1::ListItemsRequest* request,
                         v1::ListItemsResponse* response) override;
  grpc::Status MarkComplete(grpc::ServerContext* context, const v1::MarkCompleteRequest* request,
                            v1::MarkCompleteResponse* response) override;
  grpc::Status ReopenItems(grpc::ServerContext* context, const v1::ReopenItemsRequest* request,
                           v1::ReopenItemsResponse* response) override;
  grpc::Status FindRequest(grpc::ServerContext* context, const v1::FindRequestRequest* request,
                           v1::FindRequestResponse* response) override;

 private:
  ledger::BatchLedger* const ledger_;    // not owned
  item::BatchReopener* const reopener_;  // not owned
  const std::function<void(uint64_t batch)> on_complete_;
  const FindRequestBatch find_request_;
};

}  // namespace muster::initiator::api
