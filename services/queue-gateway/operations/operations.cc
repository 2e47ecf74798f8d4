// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/operations/operations.h"

#include "services/queue-gateway/operations/names.h"

namespace muster::queue_gateway::operations {
namespace {

using auth::Operation;
using protocol::ErrorCode;

Outcome RunChecked(Operation operation, const Call& call, const Stores& stores) {
  switch (operation) {
    case Operation::kListQueues:
      return ListQueues(call, stores);
    case Operation::kGetServiceProperties:
      return GetServiceProperties(call, stores);
    case Operation::kSetServiceProperties:
      return SetServiceProperties(call, stores);
    case Operation::kGetServiceStats:
      return GetServiceStats(call, stores);
    case Operation::kGetUserDelegationKey:
      return GetUserDelegationKey(call, stores);
    case Operation::kCreateQueue:
      return CreateQueue(call, stores);
    case Operation::kDeleteQueue:
      return DeleteQueue(call, stores);
    case Operation::kGetQueueMetadata:
      return GetQueueMetadata(call, stores);
    case Operation::kSetQueueMetadata:
      return SetQueueMetadata(call, stores);
    case Operation::kGetQueueAcl:
      return GetQueueAcl(call, stores);
    case Operation::kSetQueueAcl:
      return SetQueueAcl(call, stores);
    case Operation::kGetQueueStats:
      return GetQueueStats(call, stores);
    case Operation::kListPoison:
      return ListPoison(call, stores);
    case Operation::kRedrivePoison:
      return RedrivePoison(call, stores);
    case Operation::kPutMessage:
      return PutMessage(call, stores);
    case Operation::kGetMessages:
      return GetMessages(call, stores);
    case Operation::kPeekMessages:
      return PeekMessages(call, stores);
    case Operation::kUpdateMessage:
      return UpdateMessage(call, stores);
    case Operation::kDeleteMessage:
      return DeleteMessage(call, stores);
    case Operation::kClearMessages:
      return ClearMessages(call, stores);
  }
  return ErrorCode::kNotImplemented;
}

}  // namespace

std::optional<protocol::Error> CheckPlace(Operation operation, const Call& call) {
  if (!call.resource.queue.empty()) {
    const auto problem = CheckQueueName(call.resource.queue);
    if (problem.has_value()) return *problem;
  }
  // The SDK for JavaScript sends every second try of a get there.
  if (call.resource.is_secondary && operation != Operation::kGetMessages &&
      !protocol::IsReadOnly(operation)) {
    return ErrorCode::kInsufficientAccountPermissions;
  }
  return std::nullopt;
}

Outcome RunOperation(Operation operation, const Call& call, const Stores& stores) {
  if (const auto problem = CheckPlace(operation, call)) return *problem;
  return RunChecked(operation, call, stores);
}

}  // namespace muster::queue_gateway::operations
