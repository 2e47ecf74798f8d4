// ScalingLeaderClient: calls the scaling agent that currently leads the mesh.
//
//   known agents ──► ask one ──► it leads: its answer
//                      ▲    ├──► another one leads: ask that one next
//                      └────┴──► it does not answer: ask the next one
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "grpcpp/channel.h"
#include "muster/base/mutex.h"
#include "muster/base/status.h"
#include "muster/rpc/channel.h"
#include "muster/rpc/status.h"
#include "muster/v1/scaling_service.grpc.pb.h"

namespace muster::client {

// HOST:PORT of every scaling agent that is known now.
using AgentAddresses = std::function<absl::StatusOr<std::vector<std::string>>()>;

// Whether ScalingService answered with the reason NOT_LEADER.
bool IsNotLeader(const absl::Status& status);

// Thread-safe.
class ScalingLeaderClient {
 public:
  ScalingLeaderClient(AgentAddresses agents, rpc::ChannelOptions channel_options);

  // Makes one call and returns its status. `last`: there is no further agent to ask after this one.
  using Call = absl::FunctionRef<absl::Status(v1::ScalingService::Stub& stub, bool last)>;

  // Makes the call to one agent after the other, until one leads and answers. Its answer is the
  // result, with the agent's address if it is Unavailable or DeadlineExceeded. Unavailable: no
  // agent is known, or none leads. Errors of AgentAddresses come back as they are.
  absl::Status Ask(Call call) ABSL_LOCKS_EXCLUDED(mu_);

  // One unary call: Unary<v1::GetRulesResponse>(&Stub::GetRules, request, timeout). A silent agent
  // takes half of the time that is left, so that time remains to ask another one.
  template <typename Response, typename Method, typename Request>
  absl::StatusOr<Response> Unary(Method method, const Request& request, absl::Duration timeout)
      ABSL_LOCKS_EXCLUDED(mu_) {
    const absl::Time deadline = absl::Now() + timeout;
    Response response;
    MUSTER_RETURN_IF_ERROR(Ask([&](v1::ScalingService::Stub& stub, bool last) {
      const absl::Duration left = deadline - absl::Now();
      rpc::CallContext context(last ? left : left / 2);
      Response answer;
      const absl::Status status = rpc::FromGrpc((stub.*method)(&context, request, &answer));
      if (status.ok()) response = std::move(answer);
      return status;
    }));
    return response;
  }

 private:
  absl::StatusOr<std::shared_ptr<grpc::Channel>> Connect(const std::string& address)
      ABSL_LOCKS_EXCLUDED(mu_);
  // The agents to ask; the last leader first.
  absl::StatusOr<std::vector<std::string>> Candidates() ABSL_LOCKS_EXCLUDED(mu_);
  void Found(const std::string& address, const std::shared_ptr<grpc::Channel>& channel)
      ABSL_LOCKS_EXCLUDED(mu_);

  const AgentAddresses agents_;
  const rpc::ChannelOptions channel_options_;

  base::Mutex mu_;
  // The last leader.
  std::string leader_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<grpc::Channel> channel_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::client
