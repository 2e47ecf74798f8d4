#include "muster/kubernetes/http_client.h"

#include <utility>

#include "muster/base/status_macros.h"
#include "muster/kubernetes/curl_connection.h"
#include "muster/kubernetes/limits.h"

namespace muster::kubernetes {

absl::StatusOr<std::unique_ptr<HttpClient>> HttpClient::Open(Access access) {
  MUSTER_RETURN_IF_ERROR(Validate(access));
  return std::unique_ptr<HttpClient>(new HttpClient(std::move(access)));
}

HttpClient::HttpClient(Access access) : access_(std::move(access)) {}

HttpClient::~HttpClient() = default;

absl::StatusOr<HttpAnswer> HttpClient::Send(const HttpRequest& request,
                                            const std::stop_token& stop) {
  std::string body;
  const auto collect = [&](absl::string_view piece) {
    if (body.size() + piece.size() > kMaxAnswerBytes) {
      return absl::UnavailableError("the answer is too large");
    }
    body.append(piece.data(), piece.size());
    return absl::OkStatus();
  };
  MUSTER_ASSIGN_OR_RETURN(HttpAnswer answer, Stream(request, collect, stop));
  if (answer.body.empty()) answer.body = std::move(body);
  return answer;
}

absl::StatusOr<HttpAnswer> HttpClient::Stream(const HttpRequest& request, Sink sink,
                                              const std::stop_token& stop) {
  std::unique_ptr<CurlConnection> connection = Borrow();
  auto answer = connection->Exchange(access_, request, sink, stop);
  GiveBack(std::move(connection));
  return answer;
}

std::unique_ptr<CurlConnection> HttpClient::Borrow() {
  {
    base::MutexLock lock(&mu_);
    if (!idle_.empty()) {
      auto connection = std::move(idle_.back());
      idle_.pop_back();
      return connection;
    }
  }
  return std::make_unique<CurlConnection>();
}

void HttpClient::GiveBack(std::unique_ptr<CurlConnection> connection) {
  base::MutexLock lock(&mu_);
  if (idle_.size() < kMaxIdleConnections) idle_.push_back(std::move(connection));
}

}  // namespace muster::kubernetes
