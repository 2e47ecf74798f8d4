// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/client/fake_scaling_agent.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/proto_time.h"
#include "muster/base/status.h"
#include "muster/rpc/server.h"
#include "muster/rpc/status.h"

namespace muster::client::testing {
namespace {

constexpr int kDefaultPage = 50;
constexpr int kMaxPage = 1000;

bool IsOf(const v1::GetDecisionResponse& one, const std::string& target) {
  return target.empty() || one.decision().target() == target;
}

absl::Status NoTarget(absl::string_view target) {
  return absl::NotFoundError(absl::StrCat("the rules have no target '", target, "'"));
}

}  // namespace

FakeAgent::FakeAgent() {
  state_.agent.set_leads(true);
  rpc::ServerOptions options;
  options.addresses = {"localhost:0"};
  server_ = rpc::Server::Start(options, {{v1::ScalingService::service_full_name(), this}}).value();
  address_ = server_->addresses().front();
}

FakeAgent::~FakeAgent() { Die(); }

void FakeAgent::StepDown(const std::string& leader) {
  Tell([&](AgentState& state) {
    state.agent.set_leads(false);
    state.agent.set_leader(leader);
  });
}

void FakeAgent::AwaitCalls(int calls) {
  base::MutexLock lock(&mu_);
  while (state_.calls < calls) changed_.Wait(&mu_);
}

void FakeAgent::AwaitTold() {
  base::MutexLock lock(&mu_);
  while (told_ < state_.decisions.size()) changed_.Wait(&mu_);
}

void FakeAgent::Die() {
  {
    base::MutexLock lock(&mu_);
    dying_ = true;
    changed_.NotifyAll();
  }
  server_.reset();
}

absl::Status FakeAgent::LeadsLocked() {
  ++state_.calls;
  changed_.NotifyAll();
  if (state_.agent.leads()) return state_.trouble;
  rpc::ErrorReason reason{"NOT_LEADER"};
  if (!state_.agent.leader().empty()) reason.metadata["leader"] = state_.agent.leader();
  return rpc::WithReason(absl::FailedPreconditionError("this agent does not lead"), reason);
}

v1::ScalingTarget* FakeAgent::FindLocked(absl::string_view name) {
  const auto found =
      std::find_if(state_.targets.begin(), state_.targets.end(),
                   [&](const v1::ScalingTarget& one) { return one.target() == name; });
  return found == state_.targets.end() ? nullptr : &*found;
}

grpc::Status FakeAgent::GetAgent(grpc::ServerContext* context, const v1::GetAgentRequest*,
                                 v1::GetAgentResponse* response) {
  return rpc::Answer(*context, [&] {
    base::MutexLock lock(&mu_);
    *response = state_.agent;
    return absl::OkStatus();
  });
}

grpc::Status FakeAgent::ListTargets(grpc::ServerContext* context,
                                    const v1::ListTargetsRequest* request,
                                    v1::ListTargetsResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    base::MutexLock lock(&mu_);
    MUSTER_RETURN_IF_ERROR(LeadsLocked());
    for (const v1::ScalingTarget& one : state_.targets) {
      if (request->target().empty() || one.target() == request->target()) {
        *response->add_targets() = one;
      }
    }
    const bool found = request->target().empty() || response->targets_size() > 0;
    return found ? absl::OkStatus() : NoTarget(request->target());
  });
}

grpc::Status FakeAgent::GetDecision(grpc::ServerContext* context,
                                    const v1::GetDecisionRequest* request,
                                    v1::GetDecisionResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    base::MutexLock lock(&mu_);
    MUSTER_RETURN_IF_ERROR(LeadsLocked());
    for (auto one = state_.decisions.rbegin(); one != state_.decisions.rend(); ++one) {
      const bool is_it = request->decision().empty() ? IsOf(*one, request->target())
                                                     : one->decision().id() == request->decision();
      if (!is_it) continue;
      *response = *one;
      return absl::OkStatus();
    }
    return absl::NotFoundError(absl::StrCat("no decision '", request->decision(), "' is kept"));
  });
}

grpc::Status FakeAgent::ListDecisions(grpc::ServerContext* context,
                                      const v1::ListDecisionsRequest* request,
                                      v1::ListDecisionsResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    base::MutexLock lock(&mu_);
    MUSTER_RETURN_IF_ERROR(LeadsLocked());
    if (request->page_size() < 0 || request->page_size() > kMaxPage) {
      return rpc::BadField("page_size", "must be within 0 to 1000");
    }
    if (!request->target().empty() && FindLocked(request->target()) == nullptr) {
      return NoTarget(request->target());
    }
    const int page = request->page_size() == 0 ? kDefaultPage : request->page_size();
    for (auto one = state_.decisions.rbegin(); one != state_.decisions.rend(); ++one) {
      if (response->decisions_size() == page) break;
      if (IsOf(*one, request->target())) *response->add_decisions() = one->decision();
    }
    return absl::OkStatus();
  });
}

grpc::Status FakeAgent::WatchDecisions(grpc::ServerContext* context,
                                       const v1::WatchDecisionsRequest* request,
                                       grpc::ServerWriter<v1::WatchDecisionsResponse>* writer) {
  return rpc::Answer(*context, [&] { return Watch(*request, writer); });
}

// Sends the decisions that are made from now on.
absl::Status FakeAgent::Watch(const v1::WatchDecisionsRequest& request,
                              grpc::ServerWriter<v1::WatchDecisionsResponse>* writer) {
  base::MutexLock lock(&mu_);
  MUSTER_RETURN_IF_ERROR(LeadsLocked());
  while (state_.holds_watches && !dying_) changed_.Wait(&mu_);
  told_ = state_.decisions.size();
  writer->SendInitialMetadata();
  while (state_.agent.leads() && !dying_ && state_.trouble.ok()) {
    if (told_ == state_.decisions.size()) {
      changed_.Wait(&mu_);
      continue;
    }
    v1::WatchDecisionsResponse response;
    *response.mutable_decision() = state_.decisions[told_].decision();
    // A write does not block here: the reader's window is never full in a test.
    const bool is_wanted = IsOf(state_.decisions[told_], request.target());
    if (is_wanted && !writer->Write(response)) break;
    ++told_;
    changed_.NotifyAll();
  }
  return state_.trouble;
}

grpc::Status FakeAgent::SetOverride(grpc::ServerContext* context,
                                    const v1::SetOverrideRequest* request,
                                    v1::SetOverrideResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    base::MutexLock lock(&mu_);
    MUSTER_RETURN_IF_ERROR(LeadsLocked());
    v1::ScalingTarget* const target = FindLocked(request->target());
    if (target == nullptr) return NoTarget(request->target());
    state_.set_override = *request;
    v1::ScalingOverride* const override_ = target->mutable_override();
    override_->set_target(request->target());
    override_->set_replicas(request->replicas());
    *override_->mutable_until() =
        base::ToProto(absl::FromUnixSeconds(1'000'000) + base::FromProto(request->hold()));
    *response->mutable_override() = *override_;
    return absl::OkStatus();
  });
}

grpc::Status FakeAgent::ClearOverride(grpc::ServerContext* context,
                                      const v1::ClearOverrideRequest* request,
                                      v1::ClearOverrideResponse*) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    base::MutexLock lock(&mu_);
    MUSTER_RETURN_IF_ERROR(LeadsLocked());
    v1::ScalingTarget* const target = FindLocked(request->target());
    if (target == nullptr) return NoTarget(request->target());
    state_.clear_override = *request;
    target->clear_override();
    return absl::OkStatus();
  });
}

grpc::Status FakeAgent::GetRules(grpc::ServerContext* context, const v1::GetRulesRequest*,
                                 v1::GetRulesResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    base::MutexLock lock(&mu_);
    MUSTER_RETURN_IF_ERROR(LeadsLocked());
    *response = state_.rules;
    return absl::OkStatus();
  });
}

grpc::Status FakeAgent::Simulate(grpc::ServerContext* context, const v1::SimulateRequest* request,
                                 v1::SimulateResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    base::MutexLock lock(&mu_);
    MUSTER_RETURN_IF_ERROR(LeadsLocked());
    state_.simulate = *request;
    MUSTER_RETURN_IF_ERROR(state_.simulated.status());
    *response = *state_.simulated;
    return absl::OkStatus();
  });
}

}  // namespace muster::client::testing
