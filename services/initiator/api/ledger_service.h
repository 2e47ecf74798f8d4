// LedgerService: gives controllers and other initiators access to this initiator's ledger
// (proto/muster/v1/ledger_service.proto).
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "grpcpp/server_context.h"
#include "muster/item/redrive.h"
#include "muster/ledger/batch_ledger.h"
#include "muster/v1/ledger_service.grpc.pb.h"

namespace muster::initiator::api {

// Thread-safe.
class LedgerService final : public v1::LedgerService::Service {
 public:
  // `ledger` and `reopener`, which reopens batches of `ledger`, are not owned. The service calls
  // `on_complete` with each batch that a controller marks complete, on the thread of that RPC.
  LedgerService(ledger::BatchLedger* ledger, item::BatchReopener* reopener,
                std::function<void(uint64_t batch)> on_complete)
      : ledger_(ledger), reopener_(reopener), on_complete_(std::move(on_complete)) {}

  grpc::Status GetLedgerBatch(grpc::ServerContext* context,
                              const v1::GetLedgerBatchRequest* request,
                              v1::GetLedgerBatchResponse* response) override;
  grpc::Status ListItems(grpc::ServerContext* context, const v1::ListItemsRequest* request,
                         v1::ListItemsResponse* response) override;
  grpc::Status MarkComplete(grpc::ServerContext* context, const v1::MarkCompleteRequest* request,
                            v1::MarkCompleteResponse* response) override;
  grpc::Status ReopenItems(grpc::ServerContext* context, const v1::ReopenItemsRequest* request,
                           v1::ReopenItemsResponse* response) override;

 private:
  ledger::BatchLedger* const ledger_;    // not owned
  item::BatchReopener* const reopener_;  // not owned
  const std::function<void(uint64_t batch)> on_complete_;
};

}  // namespace muster::initiator::api
