// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/text.h"
#include "services/queue-gateway/operations/acl.h"
#include "services/queue-gateway/operations/content_md5.h"
#include "services/queue-gateway/operations/operations.h"
#include "services/queue-gateway/protocol/reply.h"

namespace muster::queue_gateway::operations {

namespace {

using auth::StoredPolicy;

// As the service has it: each letter once at most, in their order. Other ones were stored once, and
// are still read.
absl::Status CheckOrder(const std::vector<StoredPolicy>& policies) {
  for (const StoredPolicy& policy : policies) {
    size_t next = 0;
    for (const char letter : policy.permission) {
      const size_t at = absl::string_view(kAclPermissions).find(letter, next);
      if (at == absl::string_view::npos) {
        return absl::InvalidArgumentError(
            absl::StrCat("Permission ", base::Quoted(policy.permission),
                         " has a letter twice, or not in the order of raup"));
      }
      next = at + 1;
    }
  }
  return absl::OkStatus();
}

}  // namespace

// An empty body, as HTTP has it for no list at all, is an empty list.
Outcome SetQueueAcl(const Call& call, const Stores& stores) {
  if (const auto problem = CheckMd5(call)) return *problem;
  const auto policies =
      call.http.body.empty() ? std::vector<StoredPolicy>() : ParseAcl(call.http.body);
  const absl::Status valid = policies.ok() ? CheckOrder(*policies) : policies.status();
  if (!valid.ok()) {
    return protocol::Error(protocol::ErrorCode::kInvalidXmlDocument,
                           {{"Reason", std::string(valid.message())}});
  }
  const absl::Status stored = StoreAcl(call.queue(), *policies, stores);
  if (!stored.ok()) return protocol::FromStore(stored);
  return protocol::Empty(204);
}

}  // namespace muster::queue_gateway::operations
