#include "muster/rpc/otherwise_service.h"

#include "muster/rpc/call.h"
#include "muster/rpc/status.h"

namespace muster::rpc {
namespace {

// Ends its call at once, and itself when gRPC has done with it.
class Refusal final : public grpc::ServerGenericBidiReactor {
 public:
  explicit Refusal(const absl::Status& why) { Finish(ToGrpc(WithAdvice(why))); }

  void OnDone() override { delete this; }
};

}  // namespace

grpc::ServerGenericBidiReactor* FallbackService::CreateReactor(
    grpc::GenericCallbackServerContext*) {
  return new Refusal(answer_());
}

}  // namespace muster::rpc
