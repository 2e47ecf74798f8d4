// CurlConnection: one exchange at a time over a connection that stays open between them.
#pragma once

#include <stop_token>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/kubernetes/access.h"
#include "muster/kubernetes/http_client.h"

namespace muster::kubernetes {

// Not thread-safe.
class CurlConnection {
 public:
  CurlConnection();
  ~CurlConnection();
  CurlConnection(const CurlConnection&) = delete;
  CurlConnection& operator=(const CurlConnection&) = delete;

  // As HttpClient::Stream.
  absl::StatusOr<HttpAnswer> Exchange(const Access& access, const HttpRequest& request,
                                      HttpClient::Sink sink, const std::stop_token& stop);

 private:
  void* const multi_;  // a CURLM, owned
};

}  // namespace muster::kubernetes
