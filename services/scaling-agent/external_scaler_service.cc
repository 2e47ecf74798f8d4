// SPDX-License-Identifier: Apache-2.0
#include "services/scaling-agent/external_scaler_service.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/status.h"
#include "muster/base/text.h"
#include "muster/rpc/server.h"
#include "muster/rpc/status.h"
#include "services/scaling-agent/limits.h"

namespace muster::scaling_agent {

using externalscaler::GetMetricSpecResponse;
using externalscaler::GetMetricsRequest;
using externalscaler::GetMetricsResponse;
using externalscaler::IsActiveResponse;
using externalscaler::ScaledObjectRef;

namespace {

// Of one replica: HPAs then make the metric's value the number of replicas.
constexpr int kTargetSize = 1;

// The caller, KEDA, asks again anyway, and the call may then go to another leader.
rpc::ChannelOptions WithoutRetries(rpc::ChannelOptions options) {
  options.retry_unavailable = false;
  return options;
}

std::string NamesOf(const scaling::rules::Rules& rules) {
  return absl::StrJoin(rules.targets, ", ",
                       [](std::string* out, const scaling::rules::Target& target) {
                         absl::StrAppend(out, target.id);
                       });
}

}  // namespace

ExternalScalerService::ExternalScalerService(Agent* agent, ActivityStreams* streams,
                                             rpc::ChannelOptions to_leader, base::Clock* clock)
    : agent_(agent),
      streams_(streams),
      to_leader_(WithoutRetries(std::move(to_leader))),
      clock_(clock) {}

absl::StatusOr<std::string> ExternalScalerService::TargetOf(const ScaledObjectRef& request) const {
  const auto rules = agent_->rules().rules;
  const auto named = request.scalermetadata().find(kTargetKey);
  if (named == request.scalermetadata().end() || named->second.empty()) {
    return rpc::BadField(absl::StrCat("scalerMetadata.", kTargetKey),
                         absl::StrCat("must name a target of the rules: ", NamesOf(*rules)));
  }
  if (rules->FindTarget(named->second) != nullptr) return named->second;
  return absl::NotFoundError(absl::StrCat("the rules have no target ", base::Quoted(named->second),
                                          ", but ", NamesOf(*rules)));
}

absl::StatusOr<int> ExternalScalerService::DesiredFor(const std::string& target) const {
  const std::shared_ptr<TargetLoop> loop = agent_->Find(target);
  const std::optional<int> desired = loop == nullptr ? std::nullopt : loop->desired();
  if (desired.has_value()) return *desired;
  return absl::UnavailableError(
      absl::StrCat("nothing has been decided for the target '", target, "' yet: ask again"));
}

absl::StatusOr<std::shared_ptr<ExternalScalerService::Stub>> ExternalScalerService::Leader(
    const grpc::ServerContextBase& context) {
  const std::string address = agent_->leader_address();
  if (address.empty() || context.client_metadata().count(kPassedOn) > 0) {
    return absl::UnavailableError("no scaling agent leads now: ask again");
  }
  base::MutexLock lock(&mu_);
  if (leader_ == nullptr || leader_address_ != address) {
    MUSTER_ASSIGN_OR_RETURN(const std::shared_ptr<grpc::Channel> channel,
                            rpc::OpenChannel(address, to_leader_));
    leader_ = std::make_shared<Stub>(channel);
    leader_address_ = address;
  }
  return leader_;
}

template <typename Request, typename Response>
absl::Status ExternalScalerService::PassOn(const grpc::ServerContext& context,
                                           grpc::Status (Stub::*method)(grpc::ClientContext*,
                                                                        const Request&, Response*),
                                           const Request& request, Response* response) {
  MUSTER_ASSIGN_OR_RETURN(const std::shared_ptr<Stub> leader, Leader(context));
  const absl::Duration left = absl::FromChrono(context.deadline()) - clock_->Now();
  rpc::CallContext call(std::min(left, kPassOnTimeout));
  call.AddMetadata(kPassedOn, "1");
  const absl::Status answer = rpc::FromGrpc(((*leader).*method)(&call, request, response));
  return base::Annotate(answer, "the agent that leads");
}

grpc::Status ExternalScalerService::IsActive(grpc::ServerContext* context,
                                             const ScaledObjectRef* request,
                                             IsActiveResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    MUSTER_ASSIGN_OR_RETURN(const std::string target, TargetOf(*request));
    if (!agent_->leads()) return PassOn(*context, &Stub::IsActive, *request, response);
    MUSTER_ASSIGN_OR_RETURN(const int desired, DesiredFor(target));
    response->set_result(desired > 0);
    return absl::OkStatus();
  });
}

// Should this agent lose the lead before the stream follows, the target's loop ends the stream with
// its next look.
ActivityStreams::Reactor* ExternalScalerService::StreamIsActive(
    grpc::CallbackServerContext* context, const ScaledObjectRef* request) {
  // The stream lasts for long, and gRPC keeps with it whatever else the caller has sent.
  ScaledObjectRef asked;
  asked.Swap(const_cast<ScaledObjectRef*>(request));
  const absl::StatusOr<std::string> target = TargetOf(asked);
  if (!target.ok()) return ActivityStreams::Refuse(target.status());
  if (agent_->leads()) return streams_->Follow(*target);
  const absl::StatusOr<std::shared_ptr<Stub>> leader = Leader(*context);
  if (!leader.ok()) return ActivityStreams::Refuse(leader.status());
  ScaledObjectRef passed_on;  // no more than the leader reads
  (*passed_on.mutable_scalermetadata())[kTargetKey] = *target;
  return streams_->Relay(*leader, passed_on);
}

grpc::Status ExternalScalerService::GetMetricSpec(grpc::ServerContext* context,
                                                  const ScaledObjectRef* request,
                                                  GetMetricSpecResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    MUSTER_RETURN_IF_ERROR(TargetOf(*request).status());
    externalscaler::MetricSpec* const spec = response->add_metricspecs();
    spec->set_metricname(kDesiredMetric);
    spec->set_targetsize(kTargetSize);
    spec->set_targetsizefloat(kTargetSize);
    return absl::OkStatus();
  });
}

grpc::Status ExternalScalerService::GetMetrics(grpc::ServerContext* context,
                                               const GetMetricsRequest* request,
                                               GetMetricsResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    MUSTER_ASSIGN_OR_RETURN(const std::string target, TargetOf(request->scaledobjectref()));
    if (request->metricname() != kDesiredMetric) {
      return absl::NotFoundError(absl::StrCat(
          "there is no metric ", base::Quoted(request->metricname()), ", but ", kDesiredMetric));
    }
    if (!agent_->leads()) return PassOn(*context, &Stub::GetMetrics, *request, response);
    MUSTER_ASSIGN_OR_RETURN(const int desired, DesiredFor(target));
    externalscaler::MetricValue* const value = response->add_metricvalues();
    value->set_metricname(kDesiredMetric);
    value->set_metricvalue(desired);
    value->set_metricvaluefloat(desired);
    return absl::OkStatus();
  });
}

}  // namespace muster::scaling_agent
