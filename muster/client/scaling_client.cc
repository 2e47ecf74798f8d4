// SPDX-License-Identifier: Apache-2.0
#include "muster/client/scaling_client.h"

#include <optional>

#include "absl/strings/str_cat.h"

namespace muster::client {
namespace {

rpc::ChannelOptions WithoutRetries(rpc::ChannelOptions options) {
  // The client asks the next agent instead of the same one again.
  options.retry_unavailable = false;
  return options;
}

// The leader that a follower names; empty: it does not know.
std::string LeaderOf(const absl::Status& status) {
  const std::optional<rpc::ErrorReason> reason = rpc::Reason(status);
  if (!reason.has_value()) return "";
  const auto leader = reason->metadata.find("leader");
  return leader == reason->metadata.end() ? "" : leader->second;
}

rpc::Verdict Judge(const absl::Status& answer) {
  if (!IsNotLeader(answer)) return {};
  return {.ask_on = true, .next = LeaderOf(answer)};
}

}  // namespace

bool IsNotLeader(const absl::Status& status) {
  const std::optional<rpc::ErrorReason> reason = rpc::Reason(status);
  return reason.has_value() && reason->reason == "NOT_LEADER";
}

bool StartsReplicas(const v1::GetAgentResponse& agent) {
  const bool has_replicas = agent.actuator() == "process" || agent.actuator() == "kubernetes";
  return agent.mode() == v1::SCALING_MODE_ACT && has_replicas;
}

ScalingLeaderClient::ScalingLeaderClient(rpc::InstanceAddresses agents,
                                         rpc::ChannelOptions channel_options)
    : agents_("scaling agent", std::move(agents), WithoutRetries(std::move(channel_options))) {}

absl::Status ScalingLeaderClient::Ask(absl::Duration timeout, Call call) {
  rpc::AskOptions options;
  options.timeout = timeout;
  {
    base::MutexLock lock(&mu_);
    options.first = leader_;
  }
  MUSTER_ASSIGN_OR_RETURN(const rpc::Asked asked, agents_.Ask(options, call, Judge));
  if (asked.answer.has_value()) {
    base::MutexLock lock(&mu_);
    leader_ = asked.address;
    return *asked.answer;
  }
  if (asked.instances == 0) {
    return absl::UnavailableError(
        "no scaling agent is known; start one with muster-scaling-agent --rules FILE");
  }
  if (!asked.silence.ok()) return asked.silence;
  return absl::UnavailableError(absl::StrCat("no scaling agent that is known leads (asked: ",
                                             asked.instances, "); one does within seconds"));
}

}  // namespace muster::client
