// SPDX-License-Identifier: Apache-2.0

// ScalingAgentClient: calls the leading scaling agent of a mesh, which it finds through the
// initiator.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/output/environment.h"
#include "cli/server/mesh_client.h"
#include "muster/base/clock.h"
#include "muster/client/batch.h"
#include "muster/client/scaling_client.h"
#include "muster/rpc/limits.h"
#include "muster/v1/scaling_service.grpc.pb.h"
#include "muster/v1/scaling_service.pb.h"

namespace muster::cli {

using ScalingStub = v1::ScalingService::Stub;

// Not thread-safe.
class ScalingAgentClient {
 public:
  // InvalidArgument: no server is named, or wrongly.
  static absl::StatusOr<std::unique_ptr<ScalingAgentClient>> Find(const CommonOptions& options);

  // One unary call, as ScalingLeaderClient has it. Unavailable: the initiator does not answer, or
  // has heard of no scaling agent.
  template <typename Request, typename Response>
  absl::StatusOr<Response> Call(MeshClient::Method<ScalingStub, Request, Response> method,
                                const std::type_identity_t<Request>& request) {
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

// DecisionFeed: follows the decisions of a mesh's scaling agents, also when another agent takes the
// lead.

// The most decisions that ListDecisions answers.
inline constexpr int kMaxListedDecisions = 1000;

// Not thread-safe.
class DecisionFeed {
 public:
  using Tell = std::function<void(const v1::ScalingDecision&)>;

  // Follows the decisions for `target`; empty: for all targets. `agent` is not owned.
  DecisionFeed(ScalingAgentClient* agent, std::string target, int limit, Tell tell)
      : agent_(agent), target_(std::move(target)), limit_(limit), tell_(std::move(tell)) {}

  // Calls `tell` with the last `limit` decisions, oldest first, then with each new decision, and
  // again when its action has ended. If the watch is cut off, or does not begin within the timeout
  // of a call, it looks for the agent that leads now, and begins with the decisions that it missed.
  // Ends with an error that is not transient, or with a transient one that has lasted two minutes;
  // with Cancelled when `stop` was requested.
  absl::Status Follow(const std::function<void(const absl::Status&)>& on_trouble,
                      base::Clock* clock, const std::stop_token& stop);

 private:
  absl::Status FollowOne(ScalingStub& stub, client::RetryBackoff* patience,
                         const std::stop_token& stop);
  absl::Status CatchUp(ScalingStub& stub);
  void TellOnce(const v1::ScalingDecision& decision);

  ScalingAgentClient* const agent_;  // not owned
  const std::string target_;
  const int limit_;
  const Tell tell_;
  bool began_ = false;
  absl::Time since_ = absl::InfiniteFuture();  // older decisions are not told
  // The decisions that were told last, by id and state of the action.
  std::deque<std::pair<std::string, int>> told_;
};

}  // namespace muster::cli
