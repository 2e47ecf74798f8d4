// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/api/ledger_service.h"

#include <sys/stat.h>

#include <memory>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/fingerprint.h"
#include "muster/base/proto_time.h"
#include "muster/base/status.h"
#include "muster/item/work_item_codec.h"
#include "muster/ledger/batch_proto.h"
#include "muster/os/process_identity.h"
#include "muster/queue/limits.h"
#include "muster/rpc/server.h"
#include "muster/rpc/status.h"
#include "muster/v1/batch.pb.h"
#include "services/initiator/retention/deleted_jobs.h"

namespace muster::initiator::api {
namespace {

constexpr int kMaxItems = 4096;
// Of a ReadItems: more than a worker claims at a time.
constexpr int kMaxItemsToRead = 64;
// Of a piece, before it is compressed: several fit into a message (rpc::kMaxMessageBytes).
constexpr size_t kPieceBytes = size_t{1} << 20;

// NotFound, too: the batch of this number is another initiator's.
absl::StatusOr<ledger::Batch> GetOwn(ledger::BatchLedger* ledger, uint64_t number) {
  absl::StatusOr<ledger::Batch> batch = ledger->Get(number);
  if (!batch.ok() || !batch->disowned) return batch;
  return absl::NotFoundError(absl::StrCat("batch ", number, " is another initiator's"));
}

// As GetOwn, of a caller that knows whose batch it means.
absl::StatusOr<ledger::Batch> GetOwnedBy(ledger::BatchLedger* ledger, uint64_t number,
                                         const std::string& owner) {
  absl::StatusOr<ledger::Batch> batch = GetOwn(ledger, number);
  if (!batch.ok() || batch->owner == owner) return batch;
  return absl::NotFoundError(absl::StrCat("batch ", number, " here is of data directory '",
                                          batch->owner, "', not of '", owner, "'"));
}

// Compressed if the caller wishes and if that makes it shorter.
void SetPiece(absl::string_view raw, bool compress, std::string* space,
              v1::ReadItemsResponse* piece) {
  piece->set_raw_bytes(static_cast<uint32_t>(raw.size()));
  piece->set_compression(v1::COMPRESSION_NONE);
  if (compress && item::Compress(raw, space)) {
    piece->set_compression(v1::COMPRESSION_LZ4);
    raw = *space;
  }
  piece->set_data(raw.data(), raw.size());
}

// False: the caller has gone.
bool WritePieces(uint32_t index, absl::string_view slice, bool compress, std::string* space,
                 rpc::StreamLimiter::Place* place,
                 grpc::ServerWriter<v1::ReadItemsResponse>* writer) {
  v1::ReadItemsResponse piece;
  piece.set_index(index);
  do {
    const absl::string_view part = slice.substr(0, kPieceBytes);
    slice.remove_prefix(part.size());
    SetPiece(part, compress, space, &piece);
    piece.set_is_last(slice.empty());
    place->Waits();
    const bool written = writer->Write(piece);
    place->Goes();
    if (!written) return false;
  } while (!slice.empty());
  return true;
}

}  // namespace

grpc::Status LedgerService::GetLedgerBatch(grpc::ServerContext* context,
                                           const v1::GetLedgerBatchRequest* request,
                                           v1::GetLedgerBatchResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    if (request->max_items() < 0 || request->max_items() > kMaxItems) {
      return rpc::BadField("max_items", absl::StrCat("must be within 0 to ", kMaxItems));
    }
    MUSTER_ASSIGN_OR_RETURN(const ledger::Batch batch, GetOwn(ledger_, request->batch()));
    *response->mutable_record() = ledger::RecordOf(batch);
    response->mutable_record()->clear_content();  // controllers do not need it to count
    *response->mutable_progress() = ledger::ProgressOf(batch);
    response->set_wants_outcome(waiters_.wants_outcome && waiters_.wants_outcome(request->batch()));
    if (request->max_items() == 0) return absl::OkStatus();
    MUSTER_ASSIGN_OR_RETURN(
        const std::vector<ledger::ItemBoundary> items,
        ledger_->Items(request->batch(), 0, static_cast<size_t>(request->max_items())));
    ledger::AddTo(items, response->mutable_items());
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
    waiters_.on_complete(request->batch(), request->has_outcome() ? &request->outcome() : nullptr);
    return absl::OkStatus();
  });
}

grpc::Status LedgerService::ReopenItems(grpc::ServerContext* context,
                                        const v1::ReopenItemsRequest* request,
                                        v1::ReopenItemsResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    if (request->items_size() > queue::kMaxListPoison) {
      return rpc::BadField("items", absl::StrCat("at most ", queue::kMaxListPoison));
    }
    MUSTER_RETURN_IF_ERROR(GetOwn(ledger_, request->batch()).status());
    MUSTER_ASSIGN_OR_RETURN(const item::RefusedItems refused,
                            reopener_->Grant(request->batch(), request->items()));
    for (const auto& [index, why] : refused) {
      v1::RefusedItem* const added = response->add_refused();
      added->set_item(index);
      added->set_why(why);
    }
    return absl::OkStatus();
  });
}

grpc::Status LedgerService::FindRequest(grpc::ServerContext* context,
                                        const v1::FindRequestRequest* request,
                                        v1::FindRequestResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    if (!find_request_) return absl::FailedPreconditionError("this initiator is alone");
    MUSTER_ASSIGN_OR_RETURN(const uint64_t batch, find_request_(*request));
    response->set_batch(batch);
    return absl::OkStatus();
  });
}

grpc::Status LedgerService::FindOpenBatch(grpc::ServerContext* context,
                                          const v1::FindOpenBatchRequest* request,
                                          v1::FindOpenBatchResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    MUSTER_ASSIGN_OR_RETURN(
        const std::optional<uint64_t> batch,
        retention::FindOpenBatch(*ledger_, request->job(), request->but_of_revision()));
    if (!batch.has_value()) return absl::NotFoundError("no batch of the job is open here");
    response->set_batch(*batch);
    return absl::OkStatus();
  });
}

grpc::Status LedgerService::LocateContent(grpc::ServerContext* context,
                                          const v1::LocateContentRequest* request,
                                          v1::LocateContentResponse* response) {
  return rpc::Answer(*context, [&] { return Locate(*request, response); });
}

absl::Status LedgerService::Locate(const v1::LocateContentRequest& request,
                                   v1::LocateContentResponse* response) const {
  MUSTER_ASSIGN_OR_RETURN(const ledger::Batch batch,
                          GetOwnedBy(ledger_, request.batch(), request.owner()));
  if (request.boot_id().empty() || request.boot_id() != os::BootId()) return absl::OkStatus();
  const absl::StatusOr<std::string> path = find_content_file_(batch);
  if (absl::IsNotFound(path.status())) return absl::OkStatus();
  MUSTER_RETURN_IF_ERROR(path.status());
  struct stat file = {};
  // It is just being renamed, or gone: ReadItems knows.
  if (stat(path->c_str(), &file) != 0) return absl::OkStatus();
  response->set_path(*path);
  response->set_device(file.st_dev);
  response->set_inode(file.st_ino);
  return absl::OkStatus();
}

grpc::Status LedgerService::ReadItems(grpc::ServerContext* context,
                                      const v1::ReadItemsRequest* request,
                                      grpc::ServerWriter<v1::ReadItemsResponse>* writer) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    if (request->items_size() > kMaxItemsToRead) {
      return rpc::BadField("items", absl::StrCat("at most ", kMaxItemsToRead));
    }
    MUSTER_RETURN_IF_ERROR(GetOwnedBy(ledger_, request->batch(), request->owner()).status());
    MUSTER_ASSIGN_OR_RETURN(
        const std::unique_ptr<rpc::StreamLimiter::Place> place,
        readers_.Admit([context](const absl::Status& why) { rpc::EndCall(context, why); }));
    std::string slice, space;
    for (const v1::ItemToRead& item : request->items()) {
      const auto hash = base::Fingerprint128::FromBytes(item.content_hash());
      if (!hash.has_value()) return rpc::BadField("items.content_hash", "must have 16 bytes");
      MUSTER_RETURN_IF_ERROR(
          content_->Read({request->batch(), item.index(), request->owner(), 0, *hash}, &slice));
      if (!WritePieces(item.index(), slice, request->compress(), &space, place.get(), writer)) {
        return absl::CancelledError("the caller has gone");
      }
    }
    return absl::OkStatus();
  });
}

}  // namespace muster::initiator::api
