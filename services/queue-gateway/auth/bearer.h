// SPDX-License-Identifier: Apache-2.0

// BearerVerifier: checks OAuth 2.0 bearer tokens (RFC 6750), which are signed JWTs (RFC 7519).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "services/queue-gateway/auth/jwks.h"
#include "services/queue-gateway/auth/user_delegation.h"
#include "services/queue-gateway/auth/watched_file.h"

namespace muster::queue_gateway::auth {

struct BearerOptions {
  // What iss may be; one that ends in "/" allows all that begin with it.
  std::vector<std::string> issuers = {"https://sts.windows.net/", "https://sts.microsoftonline.de/",
                                      "https://sts.chinacloudapi.cn/",
                                      "https://login.microsoftonline.com/"};
  // What aud may be, with or without a "/" at its end; "{account}" stands for the account's name.
  std::vector<std::string> audiences = {"https://storage.azure.com",
                                        "https://{account}.queue.core.windows.net",
                                        "e406a681-f3d4-42a8-90b6-c2b029497af1"};
  // A JSON Web Key Set. "": signatures are not checked, so anyone can make a token; for development
  // only.
  std::string jwks_file;
  // Where a client gets tokens, for the WWW-Authenticate header.
  std::string authorization_uri = "https://login.microsoftonline.com/common/oauth2/authorize";
  std::string resource_id = "https://storage.azure.com";
};

// Thread-safe. A changed key set is in force within kFileRefresh (limits.h).
class BearerVerifier {
 public:
  // InvalidArgument: the key set cannot be read, or is wrong. `clock` is not owned.
  static absl::StatusOr<std::unique_ptr<BearerVerifier>> Open(BearerOptions options,
                                                              const base::Clock* clock);

  // InvalidArgument: `token` is no JWT that could be checked. Unauthenticated: it is one, but is
  // not valid for `account` now; the message says why. Otherwise whom it is about.
  absl::StatusOr<Identity> Check(absl::string_view token, absl::string_view account) const;

  // The value of the WWW-Authenticate header.
  std::string Challenge() const;

 private:
  BearerVerifier(BearerOptions options, const base::Clock* clock)
      : options_(std::move(options)), clock_(clock) {}

  const BearerOptions options_;
  const base::Clock* const clock_;                // not owned
  std::unique_ptr<WatchedFile<KeySet>> key_set_;  // null: signatures are not checked
};

}  // namespace muster::queue_gateway::auth
