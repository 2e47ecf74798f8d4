// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/health.h"

#include "absl/strings/str_cat.h"

namespace muster::queue_gateway {
namespace {

// A few probes.
constexpr int kConnections = 32;
constexpr size_t kBodyBytes = 1024;

http::Reply Text(int status, const std::string& text) {
  http::Reply reply;
  reply.status = status;
  reply.headers = {{"Content-Type", "text/plain"}, {"Cache-Control", "no-store"}};
  reply.body = absl::StrCat(text, "\n");
  return reply;
}

}  // namespace

http::Reply AnswerHealth(const http::Request& request, const ServingState& state) {
  if (request.method != "GET" && request.method != "HEAD") return Text(405, "GET");
  if (request.target == "/healthz") return Text(200, "alive");
  if (request.target == "/readyz") return Text(state.is_ready() ? 200 : 503, state.InWords());
  return Text(404, "/healthz or /readyz");
}

absl::StatusOr<std::unique_ptr<http::Server>> ServeHealth(const std::string& address,
                                                          const ServingState* state) {
  http::ServerOptions options;
  options.address = address;
  options.io_threads = 1;
  options.workers = 1;
  options.max_connections = kConnections;
  options.max_body_bytes = kBodyBytes;
  return http::Server::Start(
      options, [state](const http::Request& request) { return AnswerHealth(request, *state); },
      [](int status, const http::Request&) { return Text(status, "refused"); });
}

}  // namespace muster::queue_gateway
