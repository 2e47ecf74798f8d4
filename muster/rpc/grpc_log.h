// SPDX-License-Identifier: Apache-2.0

// Routes gRPC's log messages to muster's log.
#pragma once

namespace muster::rpc {

// Takes effect for the whole process; calling it again does nothing. gRPC's errors are logged as
// warnings: most are a peer's fault, such as a failed handshake, and the caller learns of them by
// the status of the call. Thread-safe.
void RouteGrpcLog();

}  // namespace muster::rpc
