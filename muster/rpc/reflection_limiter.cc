// SPDX-License-Identifier: Apache-2.0
#include "muster/rpc/reflection_limiter.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "muster/rpc/stream_limiter.h"

namespace muster::rpc {

namespace {

// Tools ask, and leave: a few at a time are enough.
constexpr StreamLimits kReflectionLimits = {
    .max_streams = 16,
    .max_idle = absl::Seconds(30),
    .yields_after = absl::Seconds(1),
};

using grpc::experimental::InterceptionHookPoints;
using grpc::experimental::InterceptorBatchMethods;
using grpc::experimental::ServerRpcInfo;

// Of one call: it lives as long as the call's context.
class Interceptor final : public grpc::experimental::Interceptor {
 public:
  Interceptor(ServerRpcInfo* info, StreamLimiter* limiter)
      : context_(info->server_context()),
        place_(limiter->Admit(
            [context = context_](const absl::Status& why) { EndCall(context, why); })) {
    if (place_.ok()) (*place_)->Waits();
  }

  void Intercept(InterceptorBatchMethods* methods) override {
    using Point = InterceptionHookPoints;
    if (!place_.ok() && methods->QueryInterceptionHookPoint(Point::POST_RECV_INITIAL_METADATA)) {
      EndCall(context_, place_.status());
    }
    if (place_.ok() && methods->QueryInterceptionHookPoint(Point::POST_RECV_MESSAGE)) {
      (*place_)->Stir();
    }
    methods->Proceed();
  }

 private:
  grpc::ServerContextBase* const context_;  // not owned
  const absl::StatusOr<std::unique_ptr<StreamLimiter::Place>> place_;
};

class Factory final : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  explicit Factory(base::Clock* clock) : limiter_("reflection", kReflectionLimits, clock) {}

  // Null: the call goes its way without one.
  Interceptor* CreateServerInterceptor(ServerRpcInfo* info) override {
    if (!absl::StartsWith(info->method(), "/grpc.reflection.")) return nullptr;
    return new Interceptor(info, &limiter_);
  }

 private:
  StreamLimiter limiter_;
};

}  // namespace

std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> ReflectionLimiter(
    base::Clock* clock) {
  return std::make_unique<Factory>(clock);
}

}  // namespace muster::rpc
