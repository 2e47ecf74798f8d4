// SPDX-License-Identifier: Apache-2.0

// Bounds the calls of server reflection. gRPC answers them synchronously: each holds a thread for
// as long as its client leaves it open.
#pragma once

#include <memory>

#include "grpcpp/support/server_interceptor.h"
#include "muster/base/clock.h"

namespace muster::rpc {

// For ServerBuilder. `clock` is not owned and outlives the server.
std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> ReflectionLimiter(
    base::Clock* clock);

}  // namespace muster::rpc
