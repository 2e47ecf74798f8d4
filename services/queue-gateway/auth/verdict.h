// SPDX-License-Identifier: Apache-2.0

// Verdict: whether a request may go on, and else what its caller is told.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "services/queue-gateway/auth/user_delegation.h"

namespace muster::queue_gateway::auth {

enum class VerdictCode {
  kOk,
  kAuthenticationFailed,             // 403
  kNoAuthenticationInformation,      // 401, with `www_authenticate`
  kInvalidAuthenticationInfo,        // 400; of a bearer token 401, with `www_authenticate`
  kAuthorizationPermissionMismatch,  // 403, as the four below
  kAuthorizationServiceMismatch,
  kAuthorizationResourceTypeMismatch,
  kAuthorizationProtocolMismatch,
  kAuthorizationSourceIpMismatch,
  kResourceNotFound,  // 404: there is no such account
  kInternalError,     // 500: the queue's stored access policies cannot be read
};

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

// The code as the contract spells it, for the x-ms-error-code header: "AuthenticationFailed". "":
// kOk.
absl::string_view CodeName(VerdictCode code);

struct Verdict {
  VerdictCode code = VerdictCode::kOk;
  int http_status = 200;
  std::string message;  // for the body's <Message>
  // For the body's <AuthenticationErrorDetail>; "": none. Printable; holds no secret, only what the
  // caller sent. At most kMaxDetailBytes.
  std::string detail;
  std::string www_authenticate;   // the header's value; "": the response has none
  Scheme scheme = Scheme::kNone;  // kNone: the request did not get so far
  Identity caller;                // of kBearer
  std::string service_version;    // of a SAS: its sv, in force where x-ms-version is absent

  bool ok() const { return code == VerdictCode::kOk; }
};

// A verdict of `code` (not kOk), with its status and its message. In `detail` a line feed becomes
// "\n"; it is cut at kMaxDetailBytes.
Verdict Refuse(VerdictCode code, absl::string_view detail);

}  // namespace muster::queue_gateway::auth
