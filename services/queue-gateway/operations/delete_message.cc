// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "absl/types/span.h"
#include "services/queue-gateway/operations/operations.h"
#include "services/queue-gateway/operations/pop_receipt.h"
#include "services/queue-gateway/operations/settle.h"
#include "services/queue-gateway/protocol/parameters.h"
#include "services/queue-gateway/protocol/reply.h"

namespace muster::queue_gateway::operations {

Outcome DeleteMessage(const Call& call, const Stores& stores) {
  protocol::Parameters parameters(call.target);
  const std::string pop_receipt = parameters.Required(kReceipt);
  if (parameters.error().has_value()) return *parameters.error();
  const auto receipt = ReceiptOf(pop_receipt, call.resource.message_id);
  if (!receipt.has_value()) return NoSuchReceipt(call, stores);

  const auto deleted = Settled(
      [&] { return stores.queues->Delete(call.queue(), absl::MakeConstSpan(&*receipt, 1)); },
      stores.clock);
  if (!deleted.ok()) return protocol::FromStore(deleted.status());
  if (!deleted->front().ok()) return FromSettle(deleted->front(), call, stores);
  return protocol::Empty(204);
}

}  // namespace muster::queue_gateway::operations
