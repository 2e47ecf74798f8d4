// What gRPC has to say goes to muster's log.
#pragma once

namespace muster::rpc {

// From now on, in the whole process; again, it does nothing. What gRPC calls an error is logged as
// a warning: mostly it is a peer's, such as a handshake that failed, and whoever called is told by
// the status of the call. Thread-safe.
void RouteGrpcLog();

// While it lives, what gRPC says on this thread is logged as a detail, for debugging: whoever calls
// tells of failures himself. One at a time in a thread.
class ScopedGrpcDebugLog {
 public:
  ScopedGrpcDebugLog();
  ~ScopedGrpcDebugLog();
  ScopedGrpcDebugLog(const ScopedGrpcDebugLog&) = delete;
  ScopedGrpcDebugLog& operator=(const ScopedGrpcDebugLog&) = delete;
};

}  // namespace muster::rpc
