// SPDX-License-Identifier: Apache-2.0

// ScalingService: serves the agent's state and decisions over gRPC. See
// proto/muster/v1/scaling_service.proto.
#pragma once

#include <atomic>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "grpcpp/server_context.h"
#include "muster/base/clock.h"
#include "muster/v1/scaling_service.grpc.pb.h"
#include "services/scaling-agent/agent.h"

namespace muster::scaling_agent {

// Thread-safe.
class ScalingService final : public v1::ScalingService::Service {
 public:
  // Neither is owned.
  ScalingService(Agent* agent, base::Clock* clock) : agent_(agent), clock_(clock) {}

  // Ends all WatchDecisions streams, because this agent is about to stop.
  void StopWatches() { stopping_ = true; }

  grpc::Status GetAgent(grpc::ServerContext* context, const v1::GetAgentRequest* request,
                        v1::GetAgentResponse* response) override;
  grpc::Status ListTargets(grpc::ServerContext* context, const v1::ListTargetsRequest* request,
                           v1::ListTargetsResponse* response) override;
  grpc::Status GetDecision(grpc::ServerContext* context, const v1::GetDecisionRequest* request,
                           v1::GetDecisionResponse* response) override;
  grpc::Status ListDecisions(grpc::ServerContext* context, const v1::ListDecisionsRequest* request,
                             v1::ListDecisionsResponse* response) override;
  grpc::Status WatchDecisions(grpc::ServerContext* context,
                              const v1::WatchDecisionsRequest* request,
                              grpc::ServerWriter<v1::WatchDecisionsResponse>* writer) override;
  grpc::Status SetOverride(grpc::ServerContext* context, const v1::SetOverrideRequest* request,
                           v1::SetOverrideResponse* response) override;
  grpc::Status ClearOverride(grpc::ServerContext* context, const v1::ClearOverrideRequest* request,
                             v1::ClearOverrideResponse* response) override;
  grpc::Status GetRules(grpc::ServerContext* context, const v1::GetRulesRequest* request,
                        v1::GetRulesResponse* response) override;
  grpc::Status Simulate(grpc::ServerContext* context, const v1::SimulateRequest* request,
                        v1::SimulateResponse* response) override;

 private:
  // FailedPrecondition: this agent does not lead.
  absl::Status CheckLeads() const;
  absl::StatusOr<std::shared_ptr<TargetLoop>> Find(const std::string& target) const;
  // NotFound: `target` is neither empty nor a target of the rules.
  absl::Status CheckTarget(const std::string& target) const;

  Agent* const agent_;        // not owned
  base::Clock* const clock_;  // not owned
  std::atomic<bool> stopping_ = false;
};

}  // namespace muster::scaling_agent
