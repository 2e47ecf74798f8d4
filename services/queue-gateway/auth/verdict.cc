// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/auth/verdict.h"

#include "absl/strings/str_replace.h"
#include "muster/base/text.h"
#include "services/queue-gateway/auth/limits.h"

namespace muster::queue_gateway::auth {

namespace {

struct Description {
  int http_status;
  absl::string_view name;
  absl::string_view message;
};

Description Describe(VerdictCode code) {
  switch (code) {
    case VerdictCode::kOk:
      return {200, "", ""};
    case VerdictCode::kAuthenticationFailed:
      return {403, "AuthenticationFailed",
              "The request was not authenticated: its credentials or their signature are missing, "
              "not valid, or not valid now."};
    case VerdictCode::kNoAuthenticationInformation:
      return {401, "NoAuthenticationInformation",
              "The request has no credentials. See the header WWW-Authenticate."};
    case VerdictCode::kInvalidAuthenticationInfo:
      return {400, "InvalidAuthenticationInfo",
              "The authentication information has not the right format. Check the Authorization "
              "header."};
    case VerdictCode::kAuthorizationPermissionMismatch:
      return {403, "AuthorizationPermissionMismatch",
              "The signed permissions do not allow this operation."};
    case VerdictCode::kAuthorizationServiceMismatch:
      return {403, "AuthorizationServiceMismatch",
              "The signed services do not contain the queue service."};
    case VerdictCode::kAuthorizationResourceTypeMismatch:
      return {403, "AuthorizationResourceTypeMismatch",
              "The signed resource types do not contain the kind of resource that this operation "
              "is about."};
    case VerdictCode::kAuthorizationProtocolMismatch:
      return {403, "AuthorizationProtocolMismatch",
              "The signed protocols do not contain the protocol of this request."};
    case VerdictCode::kAuthorizationSourceIpMismatch:
      return {403, "AuthorizationSourceIPMismatch",
              "The signed addresses do not contain the address that this request comes from."};
    case VerdictCode::kResourceNotFound:
      return {404, "ResourceNotFound", "The specified resource does not exist."};
    case VerdictCode::kInternalError:
      return {500, "InternalError", "The server encountered an internal error. Try again."};
  }
  return {500, "InternalError", ""};
}

}  // namespace

absl::string_view CodeName(VerdictCode code) { return Describe(code).name; }

Verdict Refuse(VerdictCode code, absl::string_view detail) {
  const Description description = Describe(code);
  Verdict verdict;
  verdict.code = code;
  verdict.http_status = description.http_status;
  verdict.message = std::string(description.message);
  verdict.detail = base::Printable(absl::StrReplaceAll(detail, {{"\n", "\\n"}}), kMaxDetailBytes);
  return verdict;
}

}  // namespace muster::queue_gateway::auth
