// Routes gRPC's log messages to muster's log.
#pragma once

namespace muster::rpc {

// Takes effect for the whole process; calling it again does nothing. gRPC's errors are logged as
// warnings: most are a peer's fault, such as a failed handshake, and the caller learns of them by
// the status of the call. Thread-safe.
void RouteGrpcLog();

// While it lives, gRPC's messages on this thread are logged for debugging only, because the caller
// reports failures itself. One at a time in a thread.
class ScopedGrpcDebugLog {
 public:
  ScopedGrpcDebugLog();
  ~ScopedGrpcDebugLog();
  ScopedGrpcDebugLog(const ScopedGrpcDebugLog&) = delete;
  ScopedGrpcDebugLog& operator=(const ScopedGrpcDebugLog&) = delete;
};

}  // namespace muster::rpc
