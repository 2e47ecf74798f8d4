// SPDX-License-Identifier: Apache-2.0

// The operations of the Queue Storage API. Each of them checks what it was given, reads what it
// needs, acts, and replies, in this order. All are thread-safe.
#pragma once

#include <optional>

#include "services/queue-gateway/auth/request.h"
#include "services/queue-gateway/operations/call.h"

namespace muster::queue_gateway::operations {

Outcome ListQueues(const Call& call, const Stores& stores);
Outcome GetServiceProperties(const Call& call, const Stores& stores);
Outcome SetServiceProperties(const Call& call, const Stores& stores);
Outcome GetServiceStats(const Call& call, const Stores& stores);
Outcome GetUserDelegationKey(const Call& call, const Stores& stores);

Outcome CreateQueue(const Call& call, const Stores& stores);
Outcome DeleteQueue(const Call& call, const Stores& stores);
Outcome GetQueueMetadata(const Call& call, const Stores& stores);
Outcome SetQueueMetadata(const Call& call, const Stores& stores);
Outcome GetQueueAcl(const Call& call, const Stores& stores);
Outcome SetQueueAcl(const Call& call, const Stores& stores);

// Beyond Azure's API.
Outcome GetQueueStats(const Call& call, const Stores& stores);
Outcome ListPoison(const Call& call, const Stores& stores);
Outcome RedrivePoison(const Call& call, const Stores& stores);

Outcome PutMessage(const Call& call, const Stores& stores);
Outcome GetMessages(const Call& call, const Stores& stores);
Outcome PeekMessages(const Call& call, const Stores& stores);
Outcome UpdateMessage(const Call& call, const Stores& stores);
Outcome DeleteMessage(const Call& call, const Stores& stores);
Outcome ClearMessages(const Call& call, const Stores& stores);

// Of the name of the queue, if there is one, and of the location; nullopt: they are right.
std::optional<protocol::Error> CheckPlace(auth::Operation operation, const Call& call);
// Checks the place, and runs the operation.
Outcome RunOperation(auth::Operation operation, const Call& call, const Stores& stores);

}  // namespace muster::queue_gateway::operations
