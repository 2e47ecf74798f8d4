// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "services/queue-gateway/operations/names.h"
#include "services/queue-gateway/operations/operations.h"
#include "services/queue-gateway/protocol/reply.h"

namespace muster::queue_gateway::operations {

// Clients read the count into 32 bits.
Outcome GetQueueMetadata(const Call& call, const Stores& stores) {
  const auto metadata = stores.queues->GetMetadata(call.queue());
  if (!metadata.ok()) return protocol::FromStore(metadata.status());
  const auto stats = stores.queues->Stats(call.queue());
  if (!stats.ok()) return protocol::FromStore(stats.status());
  http::Headers headers = MetadataHeaders(*metadata);
  headers.emplace_back("x-ms-approximate-messages-count",
                       absl::StrCat(std::min<int64_t>(stats->stored(), INT32_MAX)));
  return protocol::Empty(200, std::move(headers));
}

}  // namespace muster::queue_gateway::operations
