// SPDX-License-Identifier: Apache-2.0

// The access control list of a queue: its stored access policies.
//
// It is a record of the sync store, "queue-gateway/acl/ACCOUNT/QUEUE":
//
//   |incarnation of the queue| 0 |the XML document that Get Queue ACL answers|
//
// A record of another incarnation is that of a queue that was deleted, and counts as none. So an
// ACL ends with its queue, though both are kept in two stores. To change the form, give the
// document a root of another name; a record that cannot be read is an error, never an empty list.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "services/queue-gateway/auth/sas.h"
#include "services/queue-gateway/operations/call.h"

namespace muster::queue_gateway::operations {

// Azure's bounds.
inline constexpr size_t kMaxPolicies = 5;
inline constexpr size_t kMaxPolicyIdCharacters = 64;
// Read, add, update and process, in the order in which the service has them.
inline constexpr char kAclPermissions[] = "raup";

// InvalidArgument: it is no list of policies, there are more than five, two have one id, an id has
// not 1 to 64 characters, a time is none, or a permission is not of "raup".
absl::StatusOr<std::vector<auth::StoredPolicy>> ParseAcl(absl::string_view document);
std::string WriteAcl(const std::vector<auth::StoredPolicy>& policies);

// NotFound: there is no such queue. Otherwise the statuses of the stores; DataLoss: the record is
// damaged.
absl::StatusOr<std::vector<auth::StoredPolicy>> ReadAcl(const queue::QueueId& queue,
                                                        const Stores& stores);
absl::Status StoreAcl(const queue::QueueId& queue, const std::vector<auth::StoredPolicy>& policies,
                      const Stores& stores);
// Of a queue that is deleted; not that of a queue that was made in its place meanwhile. Where it
// fails, the record stays, and counts for no other queue.
void ForgetAcl(const queue::QueueId& queue, const Stores& stores);

}  // namespace muster::queue_gateway::operations
