// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/auth/user_delegation.h"

#include "absl/strings/str_join.h"
#include "services/queue-gateway/auth/mac.h"

namespace muster::queue_gateway::auth {

// No request and no SAS signs a text that begins so: a method has no blank, nor has an account's
// name, nor are these the letters of permissions. So a key is never the signature of anything.
std::string UserDelegationKey(const UserDelegation& delegation, absl::string_view account,
                              absl::string_view account_key) {
  return HmacSha256(
      account_key,
      absl::StrJoin({absl::string_view("muster user delegation key"), account,
                     absl::string_view(delegation.user.object_id),
                     absl::string_view(delegation.user.tenant_id),
                     absl::string_view(delegation.start), absl::string_view(delegation.expiry),
                     absl::string_view(delegation.service), absl::string_view(delegation.version)},
                    "\n"));
}

}  // namespace muster::queue_gateway::auth
