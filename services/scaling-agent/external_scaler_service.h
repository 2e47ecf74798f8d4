// SPDX-License-Identifier: Apache-2.0

// ExternalScalerService: answers KEDA with the replicas that the agent wants. See
// proto/externalscaler/externalscaler.proto.
//
//   KEDA ──► an agent ──► leads? ─┬─ yes: what it wants for the target
//                                 └─ no: asks the one that leads, once
//
// KEDA spreads its calls over all addresses of the agents' service, so each agent must answer.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "externalscaler/externalscaler.grpc.pb.h"
#include "grpcpp/server_context.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/rpc/channel.h"
#include "services/scaling-agent/activity_streams.h"
#include "services/scaling-agent/agent.h"

namespace muster::scaling_agent {

// The one metric of each target; as its name in /metrics.
inline constexpr char kDesiredMetric[] = "muster_scale_desired";
// The key of a trigger's metadata that names the target.
inline constexpr char kTargetKey[] = "target";

// Thread-safe.
class ExternalScalerService final
    : public externalscaler::ExternalScaler::WithCallbackMethod_StreamIsActive<
          externalscaler::ExternalScaler::Service> {
 public:
  // `agent` tells `streams` what it wants. Neither is owned, nor is `clock`. `to_leader` is for
  // calls of another agent.
  ExternalScalerService(Agent* agent, ActivityStreams* streams, rpc::ChannelOptions to_leader,
                        base::Clock* clock);

  grpc::Status IsActive(grpc::ServerContext* context,
                        const externalscaler::ScaledObjectRef* request,
                        externalscaler::IsActiveResponse* response) override;
  ActivityStreams::Reactor* StreamIsActive(grpc::CallbackServerContext* context,
                                           const externalscaler::ScaledObjectRef* request) override;
  // Any agent answers it by its own rules: it needs no decision.
  grpc::Status GetMetricSpec(grpc::ServerContext* context,
                             const externalscaler::ScaledObjectRef* request,
                             externalscaler::GetMetricSpecResponse* response) override;
  grpc::Status GetMetrics(grpc::ServerContext* context,
                          const externalscaler::GetMetricsRequest* request,
                          externalscaler::GetMetricsResponse* response) override;

 private:
  using Stub = externalscaler::ExternalScaler::Stub;

  // The target that the metadata names. InvalidArgument, NotFound.
  absl::StatusOr<std::string> TargetOf(const externalscaler::ScaledObjectRef& request) const;
  // What this agent, which leads, wants for the target. Unavailable: it has not decided yet.
  absl::StatusOr<int> DesiredFor(const std::string& target) const;
  // To the agent that leads. Unavailable: none does, or the call came from another agent already.
  absl::StatusOr<std::shared_ptr<Stub>> Leader(const grpc::ServerContextBase& context)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Makes the same call at the agent that leads.
  template <typename Request, typename Response>
  absl::Status PassOn(const grpc::ServerContext& context,
                      grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                      const Request& request, Response* response) ABSL_LOCKS_EXCLUDED(mu_);

  Agent* const agent_;              // not owned
  ActivityStreams* const streams_;  // not owned
  const rpc::ChannelOptions to_leader_;
  base::Clock* const clock_;  // not owned

  base::Mutex mu_;
  std::string leader_address_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<Stub> leader_ ABSL_GUARDED_BY(mu_);  // shared with the calls under way
};

}  // namespace muster::scaling_agent
