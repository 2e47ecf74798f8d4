// SPDX-License-Identifier: Apache-2.0

// Measures the calls of a server: how long each took, and how it ended.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "grpcpp/support/server_interceptor.h"
#include "muster/base/clock.h"
#include "muster/telemetry/registry.h"

namespace muster::rpc {

// For ServerBuilder. Calls of other services than `services` have the method "other", because a
// client may make up any number of names. `metrics` and `clock` are not owned and outlive the
// server.
std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> CallMetrics(
    std::vector<std::string> services, telemetry::Registry* metrics, base::Clock* clock);

}  // namespace muster::rpc
