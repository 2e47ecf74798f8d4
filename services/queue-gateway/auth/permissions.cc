// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/auth/permissions.h"

namespace muster::queue_gateway::auth {

Needs NeedsOf(Operation operation) {
  switch (operation) {
    case Operation::kListQueues:
      return {'s', "l", ""};
    case Operation::kGetServiceProperties:
    case Operation::kGetServiceStats:
      return {'s', "r", ""};
    case Operation::kGetUserDelegationKey:
      return {'s', "", ""};
    case Operation::kSetServiceProperties:
      return {'s', "w", ""};
    case Operation::kCreateQueue:
      return {'c', "cw", ""};
    case Operation::kDeleteQueue:
      return {'c', "d", ""};
    case Operation::kGetQueueMetadata:
    case Operation::kGetQueueStats:
      return {'c', "r", "r"};
    case Operation::kSetQueueMetadata:
      return {'c', "w", ""};
    case Operation::kGetQueueAcl:
    case Operation::kSetQueueAcl:
      return {'c', "", ""};
    case Operation::kPutMessage:
      return {'o', "a", "a"};
    case Operation::kGetMessages:
    case Operation::kDeleteMessage:
      return {'o', "p", "p"};
    case Operation::kPeekMessages:
    case Operation::kListPoison:
      return {'o', "r", "r"};
    case Operation::kRedrivePoison:  // it puts into other queues
      return {'o', "p", ""};
    case Operation::kUpdateMessage:
      return {'o', "u", "u"};
    case Operation::kClearMessages:
      return {'o', "d", ""};
  }
  return {'\0', "", ""};
}

bool HasAnyOf(absl::string_view given, absl::string_view needed) {
  return given.find_first_of(needed) != absl::string_view::npos;
}

}  // namespace muster::queue_gateway::auth
