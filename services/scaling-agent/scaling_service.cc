// SPDX-License-Identifier: Apache-2.0
#include "services/scaling-agent/scaling_service.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "grpc/grpc_security_constants.h"
#include "grpcpp/security/auth_context.h"
#include "muster/base/log.h"
#include "muster/base/proto_time.h"
#include "muster/base/status.h"
#include "muster/rpc/server.h"
#include "muster/rpc/status.h"
#include "muster/scaling/policy/explain.h"
#include "muster/scaling/policy/quote.h"
#include "muster/scaling/policy/quote_proto.h"
#include "services/scaling-agent/limits.h"

namespace muster::scaling_agent {
namespace {

// The caller's name in its certificate; "" without one.
std::string CallerOf(const grpc::ServerContext& context) {
  const auto caller = context.auth_context();
  if (caller == nullptr || !caller->IsPeerAuthenticated()) return "";
  // On loopback, gRPC's only identity is the name of the transport: that is no caller.
  if (caller->GetPeerIdentityPropertyName() == GRPC_TRANSPORT_SECURITY_TYPE_PROPERTY_NAME)
    return "";
  const std::vector<grpc::string_ref> names = caller->GetPeerIdentity();
  return names.empty() ? "" : std::string(names.front().data(), names.front().size());
}

absl::StatusOr<absl::Duration> HoldIn(const v1::SetOverrideRequest& request) {
  const absl::Duration hold = base::FromProto(request.hold());
  if (hold >= kMinOverride && hold <= kMaxOverride) return hold;
  return rpc::BadField("hold", absl::StrCat("is ", scaling::policy::ShowDuration(hold),
                                            ", must be within 1 s and 30 days"));
}

}  // namespace

absl::Status ScalingService::CheckLeads() const {
  if (agent_->leads()) return absl::OkStatus();
  const std::string leader = agent_->About().leader();
  rpc::ErrorReason reason{"NOT_LEADER"};
  reason.metadata["leader"] = leader;
  return rpc::WithReason(
      absl::FailedPreconditionError(
          absl::StrCat("this agent does not lead; ",
                       leader.empty() ? "the leader is not known" : absl::StrCat(leader, " does"))),
      reason);
}

absl::StatusOr<std::shared_ptr<TargetLoop>> ScalingService::Find(const std::string& target) const {
  std::shared_ptr<TargetLoop> found = agent_->Find(target);
  if (found != nullptr) return found;
  return absl::NotFoundError(absl::StrCat("the rules have no target '", target, "'"));
}

absl::Status ScalingService::CheckTarget(const std::string& target) const {
  return target.empty() ? absl::OkStatus() : Find(target).status();
}

grpc::Status ScalingService::GetAgent(grpc::ServerContext* context, const v1::GetAgentRequest*,
                                      v1::GetAgentResponse* response) {
  return rpc::Answer(*context, [&] {
    *response = agent_->About();
    return absl::OkStatus();
  });
}

grpc::Status ScalingService::ListTargets(grpc::ServerContext* context,
                                         const v1::ListTargetsRequest* request,
                                         v1::ListTargetsResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    MUSTER_RETURN_IF_ERROR(CheckLeads());
    MUSTER_RETURN_IF_ERROR(CheckTarget(request->target()));
    for (const auto& loop : agent_->Targets()) {
      if (!request->target().empty() && loop->name() != request->target()) continue;
      *response->add_targets() = loop->Status();
    }
    return absl::OkStatus();
  });
}

grpc::Status ScalingService::GetDecision(grpc::ServerContext* context,
                                         const v1::GetDecisionRequest* request,
                                         v1::GetDecisionResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    MUSTER_RETURN_IF_ERROR(CheckLeads());
    MUSTER_ASSIGN_OR_RETURN(*response,
                            agent_->decisions()->Find(request->decision(), request->target()));
    return absl::OkStatus();
  });
}

grpc::Status ScalingService::ListDecisions(grpc::ServerContext* context,
                                           const v1::ListDecisionsRequest* request,
                                           v1::ListDecisionsResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    const int size = request->page_size();
    if (size < 0 || size > kMaxPageSize) {
      return rpc::BadField("page_size",
                           absl::StrCat("is ", size, ", must be within 0 and ", kMaxPageSize));
    }
    MUSTER_RETURN_IF_ERROR(CheckLeads());
    MUSTER_RETURN_IF_ERROR(CheckTarget(request->target()));
    const auto most = static_cast<size_t>(size == 0 ? kDefaultPageSize : size);
    for (v1::ScalingDecision& decision : agent_->decisions()->List(request->target(), most)) {
      *response->add_decisions() = std::move(decision);
    }
    return absl::OkStatus();
  });
}

grpc::Status ScalingService::WatchDecisions(
    grpc::ServerContext* context, const v1::WatchDecisionsRequest* request,
    grpc::ServerWriter<v1::WatchDecisionsResponse>* writer) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    MUSTER_RETURN_IF_ERROR(CheckLeads());
    MUSTER_RETURN_IF_ERROR(CheckTarget(request->target()));
    MUSTER_ASSIGN_OR_RETURN(const std::shared_ptr<DecisionLog::Follower> follower,
                            agent_->decisions()->Follow(request->target()));
    // The watch lasts for long, and gRPC keeps with it whatever else the caller has sent.
    v1::WatchDecisionsRequest().Swap(const_cast<v1::WatchDecisionsRequest*>(request));
    // The follower exists already, so a client that has received the headers misses no later
    // decision.
    writer->SendInitialMetadata();
    while (!context->IsCancelled()) {
      if (stopping_)
        return absl::UnavailableError("this agent is about to stop: watch another one");
      std::optional<v1::ScalingDecision> next = follower->Next(clock_->Monotonic() + kFollowPeriod);
      if (next.has_value()) {
        v1::WatchDecisionsResponse response;
        *response.mutable_decision() = *std::move(next);
        if (!writer->Write(response)) break;
      } else if (follower->ended() || !agent_->leads()) {
        return absl::UnavailableError("this agent leads no more: watch the one that does");
      }
    }
    return absl::CancelledError("the caller of this watch has left");
  });
}

grpc::Status ScalingService::SetOverride(grpc::ServerContext* context,
                                         const v1::SetOverrideRequest* request,
                                         v1::SetOverrideResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    if (request->replicas() < 0) return rpc::BadField("replicas", "must not be negative");
    MUSTER_ASSIGN_OR_RETURN(const absl::Duration hold, HoldIn(*request));
    MUSTER_RETURN_IF_ERROR(CheckLeads());
    const auto rules = agent_->rules().rules;
    const scaling::rules::Target* const target = rules->FindTarget(request->target());
    if (target == nullptr) {
      return absl::NotFoundError(
          absl::StrCat("the rules have no target '", request->target(), "'"));
    }
    if (request->replicas() < target->range.min || request->replicas() > target->range.max) {
      return absl::OutOfRangeError(
          absl::StrCat(request->replicas(), " replicas are outside the bounds of the target '",
                       target->id, "', which are ", target->range.min, " to ", target->range.max));
    }
    const Override override{target->id, request->replicas(), clock_->Now() + hold,
                            CallerOf(*context)};
    MUSTER_RETURN_IF_ERROR(agent_->SetOverride(override));
    base::Log(base::kInfo, "a target is held on request",
              {{"target", override.target},
               {"replicas", override.replicas},
               {"until", absl::FormatTime(override.until)},
               {"by", override.by}});
    *response->mutable_override() = ToProto(override);
    return absl::OkStatus();
  });
}

grpc::Status ScalingService::ClearOverride(grpc::ServerContext* context,
                                           const v1::ClearOverrideRequest* request,
                                           v1::ClearOverrideResponse*) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    MUSTER_RETURN_IF_ERROR(CheckLeads());
    MUSTER_RETURN_IF_ERROR(Find(request->target()).status());
    return agent_->ClearOverride(request->target());
  });
}

grpc::Status ScalingService::GetRules(grpc::ServerContext* context, const v1::GetRulesRequest*,
                                      v1::GetRulesResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    MUSTER_RETURN_IF_ERROR(CheckLeads());
    scaling::rules::ActiveRules::State state = agent_->rules();
    response->set_text(std::move(state.text));
    response->set_revision(state.revision);
    return absl::OkStatus();
  });
}

grpc::Status ScalingService::Simulate(grpc::ServerContext* context,
                                      const v1::SimulateRequest* request,
                                      v1::SimulateResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    MUSTER_RETURN_IF_ERROR(CheckLeads());
    MUSTER_ASSIGN_OR_RETURN(const Snapshot known,
                            agent_->Known(request->target(), request->queue()));
    MUSTER_ASSIGN_OR_RETURN(const scaling::policy::Quotation quotation,
                            scaling::policy::Quote(scaling::policy::FromProto(*request),
                                                   known.observation, known.options));
    *response = scaling::policy::ToProto(known.target, quotation);
    return absl::OkStatus();
  });
}

}  // namespace muster::scaling_agent
