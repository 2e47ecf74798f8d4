// SPDX-License-Identifier: Apache-2.0

// Authenticator: decides whether a request may do its operation. A caller proves that by one of
//
//   Authorization: SharedKey ACCOUNT:SIGNATURE      either key of the account; shared_key.h
//   Authorization: SharedKeyLite ACCOUNT:SIGNATURE  the same, over fewer lines
//   Authorization: Bearer TOKEN                     over HTTPS, where OAuth is on; bearer.h
//   ?sv=…&sig=…                                     a shared access signature; sas.h
//
// Shared keys and tokens allow everything in their account, but that only a token gets a user
// delegation key; a SAS allows what permissions.h says. A request with an Authorization header is
// judged by it alone, not by its query.
#pragma once

#include <memory>
#include <string>

#include "muster/base/clock.h"
#include "services/queue-gateway/auth/accounts.h"
#include "services/queue-gateway/auth/bearer.h"
#include "services/queue-gateway/auth/request.h"
#include "services/queue-gateway/auth/sas.h"
#include "services/queue-gateway/auth/shared_key.h"
#include "services/queue-gateway/auth/verdict.h"

namespace muster::queue_gateway::auth {

// Thread-safe, if what it is given is. Keeps nothing of a request.
class Authenticator {
 public:
  // Nothing is owned. `bearer` may be null: OAuth is off.
  Authenticator(const AccountSource* accounts, const BearerVerifier* bearer,
                const base::Clock* clock)
      : accounts_(accounts), bearer_(bearer), clock_(clock) {}

  // Null: there is no such account.
  std::shared_ptr<const Account> FindAccount(const std::string& name) const {
    return accounts_->Find(name);
  }

  // Calls `policies` at most once, and only for a well-signed SAS that names a stored access
  // policy.
  Verdict Check(const SignedRequest& request, Operation operation,
                const PolicyReader& policies) const;

 private:
  Verdict CheckHeader(const SignedRequest& request, Operation operation,
                      const Account& account) const;
  Verdict CheckBearer(const SignedRequest& request, const Credential& credential) const;
  Verdict RefuseWithoutCredential(const SignedRequest& request) const;
  // 401, with where tokens come from. Tokens are on.
  Verdict Challenge(Verdict verdict) const;

  const AccountSource* const accounts_;  // not owned
  const BearerVerifier* const bearer_;   // not owned; null: OAuth is off
  const base::Clock* const clock_;       // not owned
};

}  // namespace muster::queue_gateway::auth
