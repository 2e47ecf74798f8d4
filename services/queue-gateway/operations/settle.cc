// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/operations/settle.h"

namespace muster::queue_gateway::operations {

using protocol::ErrorCode;

protocol::Error NoSuchReceipt(const Call& call, const Stores& stores) {
  const auto there = stores.queues->Holds(call.queue(), call.resource.message_id);
  if (there.ok()) return *there ? ErrorCode::kPopReceiptMismatch : ErrorCode::kMessageNotFound;
  if (!absl::IsUnimplemented(there.status())) return protocol::FromStore(there.status());
  const auto metadata = stores.queues->GetMetadata(call.queue());
  if (!metadata.ok()) return protocol::FromStore(metadata.status());
  return ErrorCode::kPopReceiptMismatch;
}

protocol::Error FromSettle(const absl::Status& status, const Call& call, const Stores& stores) {
  if (absl::IsNotFound(status)) return ErrorCode::kMessageNotFound;
  if (absl::IsFailedPrecondition(status) || absl::IsInvalidArgument(status)) {
    return NoSuchReceipt(call, stores);
  }
  return protocol::FromStore(status);
}

}  // namespace muster::queue_gateway::operations
