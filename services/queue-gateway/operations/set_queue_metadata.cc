// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/operations/operations.h"
#include "services/queue-gateway/operations/queue_settings.h"
#include "services/queue-gateway/protocol/reply.h"

namespace muster::queue_gateway::operations {

Outcome SetQueueMetadata(const Call& call, const Stores& stores) {
  const protocol::OrError<queue::Metadata> metadata = NewMetadataOf(call, stores);
  if (!metadata.ok()) return metadata.error();
  const absl::Status set = stores.queues->SetMetadata(call.queue(), *metadata);
  if (!set.ok()) return FromMetadataStatus(set);
  return protocol::Empty(204);
}

}  // namespace muster::queue_gateway::operations
