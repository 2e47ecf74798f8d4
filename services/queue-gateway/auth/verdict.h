// SPDX-License-Identifier: Apache-2.0

// Verdict: whether a request may go on, and else what its caller is told.
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "services/queue-gateway/auth/user_delegation.h"
#include "services/queue-gateway/errors/error_code.h"

namespace muster::queue_gateway::auth {

// How the caller proved what it may do.
enum class Scheme {
  kNone,
  kSharedKey,
  kSharedKeyLite,
  kSharedKey2008,
  kServiceSas,
  kAccountSas,
  kUserDelegationSas,
  kBearer
};

struct Verdict {
  std::optional<errors::ErrorCode> code;  // why it is refused
  int http_status = 200;
  // For the body's <AuthenticationErrorDetail>; "": none. Printable; holds no secret, only what the
  // caller sent. At most kMaxDetailBytes.
  std::string detail;
  std::string www_authenticate;   // the header's value; "": the response has none
  Scheme scheme = Scheme::kNone;  // kNone: the request did not get so far
  Identity caller;                // of kBearer
  std::string service_version;    // of a SAS: its sv, in force where x-ms-version is absent

  bool ok() const { return !code.has_value(); }
};

// A verdict of `code`, with its status. In `detail` a line feed becomes
// "\n"; it is cut at kMaxDetailBytes.
Verdict Refuse(errors::ErrorCode code, absl::string_view detail);

}  // namespace muster::queue_gateway::auth
