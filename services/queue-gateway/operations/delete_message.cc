// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/operations/delete_message.h"

#include <string>
#include <utility>

#include "absl/types/span.h"
#include "services/queue-gateway/operations/operations.h"
#include "services/queue-gateway/operations/pop_receipt.h"
#include "services/queue-gateway/operations/settle.h"
#include "services/queue-gateway/protocol/parameters.h"
#include "services/queue-gateway/protocol/reply.h"

namespace muster::queue_gateway::operations {

protocol::OrError<queue::Receipt> ReadDelete(const Call& call, const Stores& stores) {
  protocol::Parameters parameters(call.target);
  const std::string pop_receipt = parameters.Required(kReceipt);
  if (parameters.error().has_value()) return *parameters.error();
  auto receipt = ReceiptOf(pop_receipt, call.resource.message_id);
  if (!receipt.has_value()) return NoSuchReceipt(call, stores);
  return *std::move(receipt);
}

Outcome ShowDelete(const Deleted& deleted, const Call& call, const Stores& stores) {
  if (!deleted.call.ok()) return protocol::FromStore(deleted.call);
  if (!deleted.message.ok()) return FromSettle(deleted.message, call, stores);
  return protocol::Empty(204);
}

Outcome DeleteMessage(const Call& call, const Stores& stores) {
  const protocol::OrError<queue::Receipt> receipt = ReadDelete(call, stores);
  if (!receipt.ok()) return receipt.error();
  const auto deleted = Settled(
      [&] { return stores.queues->Delete(call.queue(), absl::MakeConstSpan(&*receipt, 1)); },
      stores.clock);
  return ShowDelete({deleted.status(), deleted.ok() ? deleted->front() : absl::OkStatus()}, call,
                    stores);
}

}  // namespace muster::queue_gateway::operations
