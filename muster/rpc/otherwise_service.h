// FallbackService: answers the calls of every service that a server does not have, in place of
// gRPC's Unimplemented: for a server whose services are still to come.
#pragma once

#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "grpcpp/generic/async_generic_service.h"

namespace muster::rpc {

// Thread-safe.
class FallbackService final : public grpc::CallbackGenericService {
 public:
  // `answer` is called on gRPC's threads, with each call: be quick. What it answers is no OK; it
  // goes out as any other answer does (call.h).
  explicit FallbackService(std::function<absl::Status()> answer) : answer_(std::move(answer)) {}

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override;

 private:
  const std::function<absl::Status()> answer_;
};

}  // namespace muster::rpc
