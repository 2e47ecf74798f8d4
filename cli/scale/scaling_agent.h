// ScalingAgentClient: the scaling agent of a mesh that leads, found through the initiator.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/output/environment.h"
#include "cli/server/mesh.h"
#include "muster/client/leading_agent.h"
#include "muster/rpc/limits.h"
#include "muster/v1/scaling_service.grpc.pb.h"

namespace muster::cli {

using ScalingStub = v1::ScalingService::Stub;

// Not thread-safe.
class ScalingAgentClient {
 public:
  // InvalidArgument: no server is named, or wrongly.
  static absl::StatusOr<std::unique_ptr<ScalingAgentClient>> Find(const CommonOptions& options);

  // One unary call, as ScalingLeaderClient has it. Unavailable: the initiator does not answer, or
  // has heard of no scaling agent.
  template <typename Response, typename Method, typename Request>
  absl::StatusOr<Response> Call(Method method, const Request& request) {
    return leading_.Unary<Response>(method, request, timeout());
  }
  client::ScalingLeaderClient& leading() { return leading_; }

  // What a call may take.
  absl::Duration timeout() const {
    return mesh_->options().timeout.value_or(rpc::kDefaultCallTimeout);
  }

 private:
  explicit ScalingAgentClient(std::unique_ptr<MeshClient> mesh);
  absl::StatusOr<std::vector<std::string>> Addresses();

  const std::unique_ptr<MeshClient> mesh_;
  client::ScalingLeaderClient leading_;
};

}  // namespace muster::cli
