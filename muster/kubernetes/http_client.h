// SPDX-License-Identifier: Apache-2.0

// HttpClient: single exchanges with one API server, over libcurl. All it knows of Kubernetes is how
// to authenticate. No libcurl type leaves this folder.
#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/base/mutex.h"
#include "muster/kubernetes/access.h"

namespace muster::kubernetes {

class CurlConnection;

struct HttpRequest {
  std::string method = "GET";
  std::string target = "";        // path and query, from the slash on
  std::string content_type = "";  // of the body
  std::string body = "";
  absl::Duration limit;  // for all of it
};

struct HttpAnswer {
  int code = 0;
  std::string body;
  std::optional<absl::Duration> retry_after;
};

// Thread-safe. Follows no redirect: it would carry the token elsewhere.
//   Unauthenticated     the token cannot be had
//   Unavailable         no answer, half of one, or one that is too large
//   DeadlineExceeded    no answer within the limit
//   Cancelled           `stop` was requested; at once, also while the server is silent
// No error holds a secret.
class HttpClient {
 public:
  // Takes the body of a 2xx answer piece by piece. Its error ends the exchange.
  using Sink = absl::FunctionRef<absl::Status(absl::string_view piece)>;

  // InvalidArgument: `access` is invalid.
  static absl::StatusOr<std::unique_ptr<HttpClient>> Open(Access access);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  const Access& access() const { return access_; }

  absl::StatusOr<HttpAnswer> Send(const HttpRequest& request, const std::stop_token& stop)
      ABSL_LOCKS_EXCLUDED(mu_);
  // The answer has a body only if it is not 2xx.
  absl::StatusOr<HttpAnswer> Stream(const HttpRequest& request, Sink sink,
                                    const std::stop_token& stop) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  explicit HttpClient(Access access);

  std::unique_ptr<CurlConnection> Borrow() ABSL_LOCKS_EXCLUDED(mu_);
  void GiveBack(std::unique_ptr<CurlConnection> connection) ABSL_LOCKS_EXCLUDED(mu_);

  const Access access_;
  base::Mutex mu_;
  std::vector<std::unique_ptr<CurlConnection>> idle_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::kubernetes
