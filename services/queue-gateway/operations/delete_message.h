// SPDX-License-Identifier: Apache-2.0

// Delete Message in its parts, between which others may join: what is deleted, and what is said of
// it.
#pragma once

#include "absl/status/status.h"
#include "muster/queue/queue_store.h"
#include "services/queue-gateway/operations/call.h"

namespace muster::queue_gateway::operations {

// What the store said of the whole call, and where that is OK, of the message.
struct Deleted {
  absl::Status call;
  absl::Status message = absl::OkStatus();
};

protocol::OrError<queue::Receipt> ReadDelete(const Call& call, const Stores& stores);
Outcome ShowDelete(const Deleted& deleted, const Call& call, const Stores& stores);

}  // namespace muster::queue_gateway::operations
