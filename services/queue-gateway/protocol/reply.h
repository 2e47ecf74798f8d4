// SPDX-License-Identifier: Apache-2.0

// Replies: what all replies have in common.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "services/queue-gateway/http/message.h"
#include "services/queue-gateway/protocol/error.h"

namespace muster::queue_gateway::protocol {

// What the API calls a date: RFC 1123, in GMT. What never comes is the last second of 9999.
std::string HttpDate(absl::Time time);

http::Reply Empty(int status, http::Headers headers = {});
http::Reply Xml(int status, std::string document);

// What names a reply in logs.
struct ReplyContext {
  std::string request_id;         // a GUID
  std::string version;            // of the request; "": it has none
  std::string client_request_id;  // "": the request has none
  absl::Time now;
};

// A GUID that no other request has; RFC 9562, version 4.
std::string NewRequestId();

http::Reply ErrorReply(const Error& error, const ReplyContext& context);

// Adds the headers that every reply has; to a 503 without Retry-After also that, of one second.
void AddStandardHeaders(const ReplyContext& context, http::Reply* reply);

}  // namespace muster::queue_gateway::protocol
