// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/operations/operations.h"
#include "services/queue-gateway/operations/service_properties.h"
#include "services/queue-gateway/protocol/reply.h"

namespace muster::queue_gateway::operations {

Outcome GetServiceProperties(const Call& call, const Stores& stores) {
  const auto properties = ReadProperties(call.resource.account, stores);
  if (!properties.ok()) return protocol::FromStore(properties.status());
  return protocol::Xml(200, WriteProperties(*properties));
}

}  // namespace muster::queue_gateway::operations
