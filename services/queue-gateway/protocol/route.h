// SPDX-License-Identifier: Apache-2.0

// Route: what a request is about, and what it asks for.
//
//   path style   http://HOST:PORT/ACCOUNT/QUEUE/messages/ID
//   host style   http://ACCOUNT.queue.HOST:PORT/QUEUE/messages/ID
//
// It is the host style if the first label of the host is an account: any machine has dots in its
// name. Either ACCOUNT may end in "-secondary".
#pragma once

#include <functional>
#include <string>

#include "absl/strings/string_view.h"
#include "services/queue-gateway/auth/request.h"
#include "services/queue-gateway/protocol/error.h"
#include "services/queue-gateway/protocol/target.h"

namespace muster::queue_gateway::protocol {

struct Resource {
  std::string account;        // without "-secondary"
  bool is_secondary = false;  // it was named with "-secondary"
  bool is_host_style = false;
  std::string queue;  // "" for the account; not checked yet
  bool is_messages = false;
  std::string message_id;  // "" for the queue or all its messages
};

using IsAccount = std::function<bool(const std::string& name)>;

// `host` is the header's value, with or without a port; it does not count where the target itself
// has a host (RFC 9112 §3.2.2). InvalidUri: the path is of no resource.
OrError<Resource> FindResource(absl::string_view host, const Target& target,
                               const IsAccount& is_account);

// What `method` does to the resource. UnsupportedHttpVerb, or InvalidQueryParameterValue for an
// unknown comp or restype.
OrError<auth::Operation> FindOperation(absl::string_view method, const Resource& resource,
                                       const Target& target);

// The verbs that do something to the resource, `method` aside: of the Allow header of a reply that
// refuses that one.
std::string AllowedVerbs(absl::string_view method, const Resource& resource, const Target& target);

// Whether the operation changes nothing, so that it is allowed at the secondary location.
bool IsReadOnly(auth::Operation operation);

}  // namespace muster::queue_gateway::protocol
