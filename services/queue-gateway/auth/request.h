// SPDX-License-Identifier: Apache-2.0

// SignedRequest: what of an HTTP request its authentication reads. Operation: what the request asks
// of the gateway.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace muster::queue_gateway::auth {

struct SignedRequest {
  std::string method;    // "GET"
  std::string raw_path;  // as sent: still percent-encoded, without the query
  // Decoded ("+" is a space), in order; the names as sent, repeated ones included.
  std::vector<std::pair<std::string, std::string>> query;
  // All of them, in order; lower-case names; values without the white space around them.
  std::vector<std::pair<std::string, std::string>> headers;
  std::string account;        // from the path or the host, without "-secondary"
  bool is_secondary = false;  // the account was named with "-secondary"
  std::string queue;          // empty: the request names none
  std::string peer_ip;        // "192.0.2.1", "2001:db8::1"
  bool is_https = false;

  // The value of header `name` (lower case); several values are joined by ",". nullopt: it is not
  // there.
  std::optional<std::string> Header(absl::string_view name) const;
};

enum class Operation {
  // Of the account.
  kListQueues,
  kGetServiceProperties,
  kSetServiceProperties,
  kGetServiceStats,
  kGetUserDelegationKey,
  // Of a queue.
  kCreateQueue,
  kDeleteQueue,
  kGetQueueMetadata,
  kSetQueueMetadata,
  kGetQueueAcl,
  kSetQueueAcl,
  // Of a queue, beyond Azure's.
  kGetQueueStats,
  kListPoison,
  kRedrivePoison,
  // Of messages.
  kPutMessage,
  kGetMessages,
  kPeekMessages,
  kUpdateMessage,
  kDeleteMessage,
  kClearMessages,
};

}  // namespace muster::queue_gateway::auth
