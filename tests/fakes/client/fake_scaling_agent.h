// SPDX-License-Identifier: Apache-2.0

// FakeAgent: a scaling agent on its own port, whose answers a test sets.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/base/mutex.h"
#include "muster/rpc/server.h"
#include "muster/v1/scaling_service.grpc.pb.h"

namespace muster::client::testing {

// The state that the agent reports.
struct AgentState {
  v1::GetAgentResponse agent;  // with `leads`
  std::vector<v1::ScalingTarget> targets;
  std::vector<v1::GetDecisionResponse> decisions;  // oldest first
  v1::GetRulesResponse rules;
  // The answer of Simulate.
  absl::StatusOr<v1::SimulateResponse> simulated = absl::NotFoundError("no such target");
  // When not OK: the answer of all calls except GetAgent; it also ends watches.
  absl::Status trouble;
  // While true, watches do not begin.
  bool holds_watches = false;

  // The latest requests.
  v1::SimulateRequest simulate;
  v1::SetOverrideRequest set_override;
  v1::ClearOverrideRequest clear_override;
  int calls = 0;  // of all RPCs except GetAgent
};

// Keeps the contract about NOT_LEADER, about missing targets and decisions, and about pages; it
// makes no decisions. Thread-safe.
class FakeAgent final : public v1::ScalingService::Service {
 public:
  FakeAgent();
  ~FakeAgent() override;

  const std::string& address() const { return address_; }

  // Changes the state: Tell([&](AgentState& state) { … }). Watches send new decisions.
  template <typename Change>
  void Tell(Change change) {
    base::MutexLock lock(&mu_);
    change(state_);
    changed_.NotifyAll();
  }
  AgentState state() const {
    base::MutexLock lock(&mu_);
    return state_;
  }
  // The agent at `leader` leads, and not this one.
  void StepDown(const std::string& leader);
  // Waits until this many calls have come in all, not counting GetAgent.
  void AwaitCalls(int calls);
  // Waits until the watches have sent all decisions.
  void AwaitTold();
  // From now on the agent answers no call.
  void Die();

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
  // Returns OK when the agent leads and has no trouble. Counts the call.
  absl::Status LeadsLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  v1::ScalingTarget* FindLocked(absl::string_view target) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status Watch(const v1::WatchDecisionsRequest& request,
                     grpc::ServerWriter<v1::WatchDecisionsResponse>* writer);

  mutable base::Mutex mu_;
  base::CondVar changed_;
  AgentState state_ ABSL_GUARDED_BY(mu_);
  size_t told_ ABSL_GUARDED_BY(mu_) = 0;  // decisions, by the watch that told last
  bool dying_ ABSL_GUARDED_BY(mu_) = false;
  std::unique_ptr<rpc::Server> server_;
  std::string address_;
};

}  // namespace muster::client::testing
