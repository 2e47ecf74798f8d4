// SPDX-License-Identifier: Apache-2.0

// Get Messages in its parts, between which it may wait. It receives messages for a caller, and puts
// those that were received too often into the poison queue.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "services/queue-gateway/operations/call.h"
#include "services/queue-gateway/operations/queue_settings.h"

namespace muster::queue_gateway::operations {

// What is known of a caller, for people: its address, program and request id. Valid UTF-8 of at
// most queue::kMaxHolderBytes.
std::string HolderOf(const Call& call);

// One Get Messages.
struct Get {
  queue::QueueId queue;
  queue::ReceiveOptions options;
  QueueSettings settings;
  std::string holder;  // HolderOf
};

// Errors are those of the queue's name and of the parameters; QueueNotFound.
protocol::OrError<Get> ReadGet(const Call& call, const Stores& stores);
http::Reply ShowMessages(const std::vector<queue::Message>& messages, const Call& call);

// As QueueStore::Receive. A message that was received settings.max_dequeues times already is moved
// to the poison queue, in one step with its removal, and not returned; the cause names the holder
// of the last receive. A poison queue that is not there is made, without metadata. If a message
// cannot be moved, it stays leased, and the next receive after that tries again.
absl::StatusOr<std::vector<queue::Message>> TakeMessages(const Get& get, const Stores& stores);

}  // namespace muster::queue_gateway::operations
