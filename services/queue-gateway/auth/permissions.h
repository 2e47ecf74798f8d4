// SPDX-License-Identifier: Apache-2.0

// What an operation needs of a shared access signature.
#pragma once

#include "absl/strings/string_view.h"
#include "services/queue-gateway/auth/request.h"

namespace muster::queue_gateway::auth {

// | operation                  | level     | account SAS | service SAS |
// |----------------------------|-----------|-------------|-------------|
// | list queues                | service   | l           |             |
// | get properties, statistics | service   | r           |             |
// | set properties             | service   | w           |             |
// | get a user delegation key  | service   |             |             |
// | create a queue             | container | c or w      |             |
// | delete a queue             | container | d           |             |
// | get metadata               | container | r           | r           |
// | set metadata               | container | w           |             |
// | get or set the ACL         | container |             |             |
// | get the counts of a queue  | container | r           | r           |
// | list poison                | object    | r           | r           |
// | redrive poison             | object    | p           |             |
// | put                        | object    | a           | a           |
// | get                        | object    | p           | p           |
// | peek                       | object    | r           | r           |
// | update                     | object    | u           | u           |
// | delete a message           | object    | p           | p           |
// | clear                      | object    | d           |             |
struct Needs {
  char resource_type;                     // of srt: 's', 'c' or 'o'
  absl::string_view account_permissions;  // each of them suffices; "": no account SAS allows it
  absl::string_view queue_permissions;    // likewise for a service SAS
};

Needs NeedsOf(Operation operation);

// Whether `given` has one of `needed`.
bool HasAnyOf(absl::string_view given, absl::string_view needed);

}  // namespace muster::queue_gateway::auth
