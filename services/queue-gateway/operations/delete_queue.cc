// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/operations/acl.h"
#include "services/queue-gateway/operations/operations.h"
#include "services/queue-gateway/protocol/reply.h"

namespace muster::queue_gateway::operations {

Outcome DeleteQueue(const Call& call, const Stores& stores) {
  const absl::Status deleted = stores.queues->DeleteQueue(call.queue());
  if (!deleted.ok()) return protocol::FromStore(deleted);
  ForgetAcl(call.queue(), stores);
  return protocol::Empty(204);
}

}  // namespace muster::queue_gateway::operations
