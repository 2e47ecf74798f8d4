// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "services/queue-gateway/operations/content_md5.h"
#include "services/queue-gateway/operations/operations.h"
#include "services/queue-gateway/operations/service_properties.h"
#include "services/queue-gateway/protocol/reply.h"

namespace muster::queue_gateway::operations {

Outcome SetServiceProperties(const Call& call, const Stores& stores) {
  if (const auto problem = CheckMd5(call)) return *problem;
  const absl::Status stored = StoreProperties(call.resource.account, call.http.body, stores);
  if (absl::IsInvalidArgument(stored)) {
    return protocol::Error(protocol::ErrorCode::kInvalidXmlDocument,
                           {{"Reason", std::string(stored.message())}});
  }
  if (!stored.ok()) return protocol::FromStore(stored);
  return protocol::Empty(202);
}

}  // namespace muster::queue_gateway::operations
