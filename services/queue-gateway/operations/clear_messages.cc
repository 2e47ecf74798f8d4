// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/operations/operations.h"
#include "services/queue-gateway/protocol/reply.h"

namespace muster::queue_gateway::operations {

Outcome ClearMessages(const Call& call, const Stores& stores) {
  const absl::Status cleared = stores.queues->Clear(call.queue());
  if (!cleared.ok()) return protocol::FromStore(cleared);
  return protocol::Empty(204);
}

}  // namespace muster::queue_gateway::operations
