// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/operations/limits.h"
#include "services/queue-gateway/operations/operations.h"
#include "services/queue-gateway/operations/take_messages.h"
#include "services/queue-gateway/protocol/parameters.h"

namespace muster::queue_gateway::operations {

Outcome PeekMessages(const Call& call, const Stores& stores) {
  protocol::Parameters parameters(call.target);
  const int count = static_cast<int>(parameters.Integer(kCount, 1, kMaxMessages).value_or(1));
  if (parameters.error().has_value()) return *parameters.error();
  const auto messages = stores.queues->Peek(call.queue(), count);
  if (!messages.ok()) return protocol::FromStore(messages.status());
  return ShowMessages(*messages, call);
}

}  // namespace muster::queue_gateway::operations
