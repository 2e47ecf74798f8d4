// SPDX-License-Identifier: Apache-2.0

// ScalingLeaderClient: calls the scaling agent that currently leads the mesh.
//
//   known agents ──► ask one ──► it leads: its answer
//                      ▲    ├──► another one leads: ask that one next
//                      └────┴──► it does not answer: ask the next one
#pragma once

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/mutex.h"
#include "muster/base/status.h"
#include "muster/rpc/channel.h"
#include "muster/rpc/instance_client.h"
#include "muster/rpc/status.h"
#include "muster/v1/scaling_service.grpc.pb.h"

namespace muster::client {

// Whether ScalingService answered with the reason NOT_LEADER.
bool IsNotLeader(const absl::Status& status);

// Whether the agent itself starts and stops the replicas of its targets: it acts, by an actuator
// that has some. Elsewhere it only watches, or tells what another autoscaler does.
bool StartsReplicas(const v1::GetAgentResponse& agent);

// Thread-safe.
class ScalingLeaderClient {
 public:
  ScalingLeaderClient(rpc::InstanceAddresses agents, rpc::ChannelOptions channel_options);

  // Makes one call, within the timeout, and returns its status.
  using Call = rpc::InstanceClient<v1::ScalingService>::Call;

  // Makes the call to one agent after the other, until one leads and answers. Its answer is the
  // result, with the agent's address if it is Unavailable or DeadlineExceeded. Unavailable: no
  // agent is known, or none leads. Errors of the addresses come back as they are.
  absl::Status Ask(absl::Duration timeout, Call call) ABSL_LOCKS_EXCLUDED(mu_);

  // One unary call: Unary<v1::GetRulesResponse>(&Stub::GetRules, request, timeout).
  template <typename Response, typename Method, typename Request>
  absl::StatusOr<Response> Unary(Method method, const Request& request, absl::Duration timeout)
      ABSL_LOCKS_EXCLUDED(mu_) {
    Response response;
    MUSTER_RETURN_IF_ERROR(Ask(timeout, [&](v1::ScalingService::Stub& stub, absl::Duration left) {
      rpc::CallContext context(left);
      Response answer;
      const absl::Status status = rpc::FromGrpc((stub.*method)(&context, request, &answer));
      if (status.ok()) response = std::move(answer);
      return status;
    }));
    return response;
  }

 private:
  rpc::InstanceClient<v1::ScalingService> agents_;

  base::Mutex mu_;
  std::string leader_ ABSL_GUARDED_BY(mu_);  // HOST:PORT of the last one
};

}  // namespace muster::client
