// SPDX-License-Identifier: Apache-2.0

// LedgerService: gives controllers, processors and other initiators access to this initiator's
// ledger and to the content of its batches (proto/muster/v1/ledger_service.proto).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/sync_stream.h"
#include "muster/base/clock.h"
#include "muster/content/item_content.h"
#include "muster/item/redrive.h"
#include "muster/ledger/batch_ledger.h"
#include "muster/rpc/stream_limiter.h"
#include "muster/v1/ledger_service.grpc.pb.h"

namespace muster::initiator::api {

// Readers of content at a time: each holds a thread, and the content of an item. A processor that
// hangs gives its place to one that does not.
inline constexpr rpc::StreamLimits kContentLimits = {
    .max_streams = 128,
    .max_idle = absl::Seconds(30),
    .yields_after = absl::Seconds(1),
};

// Thread-safe.
class LedgerService final : public v1::LedgerService::Service {
 public:
  // Answers FindRequest, with its statuses; empty: this initiator claims no request ids.
  using FindRequestBatch =
      std::function<absl::StatusOr<uint64_t>(const v1::FindRequestRequest& request)>;
  // The file that holds the content of a batch: an absolute path. NotFound: no file does.
  using FindContentFile = std::function<absl::StatusOr<std::string>(const ledger::Batch& batch)>;

  // Those who wait for batches. Called on the threads of RPCs.
  struct Waiters {
    // Whether anyone waits for what becomes of the batch's records; empty: for none.
    std::function<bool(uint64_t batch)> wants_outcome;
    // The controller marks the batch complete; it may have told what became of its records, else
    // null.
    std::function<void(uint64_t batch, const v1::BatchOutcome* outcome)> on_complete;
  };

  // `ledger`, `reopener`, which reopens batches of `ledger`, and `content` are not owned.
  LedgerService(ledger::BatchLedger* ledger, item::BatchReopener* reopener,
                content::ItemContent* content, FindContentFile find_content_file, Waiters waiters,
                FindRequestBatch find_request = nullptr,
                rpc::StreamLimits content_limits = kContentLimits)
      : ledger_(ledger),
        reopener_(reopener),
        content_(content),
        find_content_file_(std::move(find_content_file)),
        waiters_(std::move(waiters)),
        find_request_(std::move(find_request)),
        readers_("contents", content_limits, base::RealClock()) {}

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
  grpc::Status FindOpenBatch(grpc::ServerContext* context, const v1::FindOpenBatchRequest* request,
                             v1::FindOpenBatchResponse* response) override;
  grpc::Status LocateContent(grpc::ServerContext* context, const v1::LocateContentRequest* request,
                             v1::LocateContentResponse* response) override;
  grpc::Status ReadItems(grpc::ServerContext* context, const v1::ReadItemsRequest* request,
                         grpc::ServerWriter<v1::ReadItemsResponse>* writer) override;

 private:
  absl::Status Locate(const v1::LocateContentRequest& request,
                      v1::LocateContentResponse* response) const;

  ledger::BatchLedger* const ledger_;    // not owned
  item::BatchReopener* const reopener_;  // not owned
  content::ItemContent* const content_;  // not owned
  const FindContentFile find_content_file_;
  const Waiters waiters_;
  const FindRequestBatch find_request_;
  rpc::StreamLimiter readers_;
};

}  // namespace muster::initiator::api
