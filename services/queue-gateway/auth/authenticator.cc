// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/auth/authenticator.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster::queue_gateway::auth {

Verdict Authenticator::Check(const SignedRequest& request, Operation operation,
                             const PolicyReader& policies) const {
  const std::shared_ptr<const Account> account = accounts_->Find(request.account);
  if (account == nullptr) return Refuse(errors::ErrorCode::kResourceNotFound, "");
  if (request.Header("authorization").has_value()) {
    return CheckHeader(request, operation, *account);
  }
  if (HasSas(request)) return CheckSas(request, operation, *account, policies, clock_->Now());
  return RefuseWithoutCredential(request);
}

Verdict Authenticator::CheckHeader(const SignedRequest& request, Operation operation,
                                   const Account& account) const {
  const auto headers = std::count_if(request.headers.begin(), request.headers.end(),
                                     [](const auto& h) { return h.first == "authorization"; });
  if (headers > 1) {
    return Refuse(errors::ErrorCode::kInvalidAuthenticationInfo,
                  "there are two Authorization headers");
  }
  const absl::StatusOr<Credential> credential =
      ParseAuthorization(*request.Header("authorization"));
  if (!credential.ok()) {
    return Refuse(errors::ErrorCode::kInvalidAuthenticationInfo, credential.status().message());
  }
  if (credential->scheme == "sharedkey" || credential->scheme == "sharedkeylite") {
    Verdict verdict = CheckSharedKey(request, *credential, account, clock_->Now());
    if (!verdict.ok() || operation != Operation::kGetUserDelegationKey) return verdict;
    return Refuse(errors::ErrorCode::kAuthenticationFailed,
                  "a user delegation key is for a caller with a bearer token");
  }
  if (credential->scheme == "bearer") return CheckBearer(request, *credential);
  return Refuse(errors::ErrorCode::kInvalidAuthenticationInfo,
                "the scheme is not SharedKey, SharedKeyLite or Bearer");
}

Verdict Authenticator::CheckBearer(const SignedRequest& request,
                                   const Credential& credential) const {
  if (bearer_ == nullptr) {
    return Refuse(errors::ErrorCode::kAuthenticationFailed, "bearer tokens are off on this server");
  }
  // An eavesdropper could use the token until it expires.
  if (!request.is_https) {
    return Refuse(errors::ErrorCode::kAuthenticationFailed, "a bearer token needs HTTPS");
  }
  const absl::StatusOr<Identity> caller = bearer_->Check(credential.parameters, request.account);
  const absl::Status& status = caller.status();
  if (status.ok()) {
    Verdict verdict;
    verdict.scheme = Scheme::kBearer;
    verdict.caller = *caller;
    return verdict;
  }
  return Challenge(Refuse(errors::ErrorCode::kInvalidAuthenticationInfo, status.message()));
}

// Clients get another token after a challenge, and after nothing else.
Verdict Authenticator::Challenge(Verdict verdict) const {
  constexpr int kUnauthorized = 401;
  verdict.http_status = kUnauthorized;
  verdict.www_authenticate = bearer_->Challenge();
  return verdict;
}

// A client that could send a token learns where to get one, as clients of the service expect.
Verdict Authenticator::RefuseWithoutCredential(const SignedRequest& request) const {
  constexpr char kNone[] = "the request has no credentials";
  if (bearer_ == nullptr || !request.is_https) {
    return Refuse(errors::ErrorCode::kAuthenticationFailed, kNone);
  }
  return Challenge(Refuse(errors::ErrorCode::kNoAuthenticationInformation, kNone));
}

}  // namespace muster::queue_gateway::auth
