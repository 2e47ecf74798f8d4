// SPDX-License-Identifier: Apache-2.0

// Put Message in its parts, between which others may join: what is put, and what is said of it.
#pragma once

#include "absl/status/statusor.h"
#include "muster/queue/queue_store.h"
#include "services/queue-gateway/operations/call.h"

namespace muster::queue_gateway::operations {

// Errors are those of the request; QueueNotFound.
protocol::OrError<queue::NewMessage> ReadPut(const Call& call, const Stores& stores);
Outcome ShowPut(const absl::StatusOr<queue::PutResult>& put, const Call& call);

}  // namespace muster::queue_gateway::operations
