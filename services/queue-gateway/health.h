// SPDX-License-Identifier: Apache-2.0

// The health listener: GET /healthz and /readyz over HTTP, without TLS, for probes.
//
//   /healthz   200 as long as the process answers
//   /readyz    200, or 503 with the reason in a few words (ServingState)
//
// It says nothing that a stranger may not know.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "services/queue-gateway/http/message.h"
#include "services/queue-gateway/http/server.h"
#include "services/queue-gateway/serving_state.h"

namespace muster::queue_gateway {

http::Reply AnswerHealth(const http::Request& request, const ServingState& state);

// `address`: HOST:PORT. `state` is not owned and outlives the server. Errors: as of
// http::Server::Start.
absl::StatusOr<std::unique_ptr<http::Server>> ServeHealth(const std::string& address,
                                                          const ServingState* state);

}  // namespace muster::queue_gateway
