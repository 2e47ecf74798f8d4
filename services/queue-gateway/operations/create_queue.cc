// SPDX-License-Identifier: Apache-2.0
#include "absl/strings/ascii.h"
#include "services/queue-gateway/operations/operations.h"
#include "services/queue-gateway/operations/queue_settings.h"
#include "services/queue-gateway/protocol/reply.h"

namespace muster::queue_gateway::operations {

namespace {

// Names count in any case: some clients send them in lower case whatever their program says.
queue::Metadata WithLoweredNames(const queue::Metadata& metadata) {
  queue::Metadata lowered;
  for (const auto& [name, value] : metadata) lowered.emplace(absl::AsciiStrToLower(name), value);
  return lowered;
}

}  // namespace

// Of two callers that create the same queue at once, both may see 201.
Outcome CreateQueue(const Call& call, const Stores& stores) {
  const protocol::OrError<queue::Metadata> metadata = NewMetadataOf(call, stores);
  if (!metadata.ok()) return metadata.error();
  const auto there = stores.queues->GetMetadata(call.queue());
  if (!there.ok() && !absl::IsNotFound(there.status())) return protocol::FromStore(there.status());
  if (there.ok()) {
    if (WithLoweredNames(*there) != WithLoweredNames(*metadata)) {
      return protocol::ErrorCode::kQueueAlreadyExists;
    }
    return protocol::Empty(204);
  }
  const absl::Status created = stores.queues->CreateQueue(call.queue(), *metadata);
  if (!created.ok()) return FromMetadataStatus(created);
  return protocol::Empty(201);
}

}  // namespace muster::queue_gateway::operations
