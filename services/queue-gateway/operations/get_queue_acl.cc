// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "services/queue-gateway/auth/sas_time.h"
#include "services/queue-gateway/operations/acl.h"
#include "services/queue-gateway/operations/operations.h"
#include "services/queue-gateway/protocol/reply.h"

namespace muster::queue_gateway::operations {

// The times in full, as the service answers them: there are clients that read no shorter ones.
Outcome GetQueueAcl(const Call& call, const Stores& stores) {
  auto policies = ReadAcl(call.queue(), stores);
  if (!policies.ok()) return protocol::FromStore(policies.status());
  for (auth::StoredPolicy& policy : *policies) {
    for (std::string* const text : {&policy.start, &policy.expiry}) {
      const std::optional<absl::Time> time = auth::ParseSasTime(*text);
      if (!time.has_value()) continue;  // none is there
      *text = absl::FormatTime("%Y-%m-%dT%H:%M:%E7SZ", *time, absl::UTCTimeZone());
    }
  }
  return protocol::Xml(200, WriteAcl(*policies));
}

}  // namespace muster::queue_gateway::operations
