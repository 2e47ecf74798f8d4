#include "muster/client/scaling_client.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"

namespace muster::client {
namespace {

// The most agents asked for one call. A mesh has two or three; more of them are made up.
constexpr size_t kMaxAsked = 16;

rpc::ChannelOptions WithoutRetries(rpc::ChannelOptions options) {
  // The client asks the next agent instead of the same one again.
  options.retry_unavailable = false;
  return options;
}

// Whether another agent may give a better answer.
bool IsSilent(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
         absl::IsCancelled(status);
}

// The leader that a follower names; empty: it does not know.
std::string LeaderOf(const absl::Status& status) {
  const std::optional<rpc::ErrorReason> reason = rpc::Reason(status);
  if (!reason.has_value()) return "";
  const auto leader = reason->metadata.find("leader");
  return leader == reason->metadata.end() ? "" : leader->second;
}

absl::Status Silence(const absl::Status& status, const std::string& address) {
  // This client cancels no calls, so a cancelled call is the agent's doing.
  const absl::Status told =
      absl::IsCancelled(status) ? absl::UnavailableError(status.message()) : status;
  return base::Annotate(told, absl::StrCat("scaling agent ", address));
}

// Moves `address` to `next`, or puts it in there, unless it was asked already.
void AskNext(const std::string& address, size_t next, std::vector<std::string>* agents) {
  const auto asked = agents->begin() + static_cast<ptrdiff_t>(next);
  if (address.empty() || std::find(agents->begin(), asked, address) != asked) return;
  const auto known = std::find(asked, agents->end(), address);
  if (known != agents->end()) {
    std::rotate(asked, known, known + 1);
  } else {
    agents->insert(asked, address);
  }
}

}  // namespace

bool IsNotLeader(const absl::Status& status) {
  const std::optional<rpc::ErrorReason> reason = rpc::Reason(status);
  return reason.has_value() && reason->reason == "NOT_LEADER";
}

ScalingLeaderClient::ScalingLeaderClient(AgentAddresses agents, rpc::ChannelOptions channel_options)
    : agents_(std::move(agents)), channel_options_(WithoutRetries(std::move(channel_options))) {}

absl::Status ScalingLeaderClient::Ask(Call call) {
  MUSTER_ASSIGN_OR_RETURN(std::vector<std::string> agents, Candidates());
  if (agents.empty()) {
    return absl::UnavailableError(
        "no scaling agent is known; start one with muster-scaling-agent --rules FILE");
  }
  absl::Status silence;
  size_t asked = 0;
  for (; asked < std::min(agents.size(), kMaxAsked); ++asked) {
    const std::string address = agents[asked];
    const auto channel = Connect(address);
    const auto stub = channel.ok() ? v1::ScalingService::NewStub(*channel) : nullptr;
    const absl::Status status = channel.ok() ? call(*stub, asked + 1 == agents.size())
                                             : absl::UnavailableError(channel.status().message());
    if (IsNotLeader(status)) {
      AskNext(LeaderOf(status), asked + 1, &agents);
    } else if (IsSilent(status)) {
      if (silence.ok()) silence = Silence(status, address);
    } else {
      Found(address, *channel);
      return status;
    }
  }
  if (!silence.ok()) return silence;
  return absl::UnavailableError(absl::StrCat("no scaling agent that is known leads (asked: ", asked,
                                             "); one does within seconds"));
}

absl::StatusOr<std::shared_ptr<grpc::Channel>> ScalingLeaderClient::Connect(
    const std::string& address) {
  {
    base::MutexLock lock(&mu_);
    if (address == leader_) return channel_;
  }
  return rpc::OpenChannel(address, channel_options_);
}

absl::StatusOr<std::vector<std::string>> ScalingLeaderClient::Candidates() {
  MUSTER_ASSIGN_OR_RETURN(std::vector<std::string> agents, agents_());
  base::MutexLock lock(&mu_);
  const auto led = std::find(agents.begin(), agents.end(), leader_);
  if (led != agents.end()) std::rotate(agents.begin(), led, led + 1);
  return agents;
}

void ScalingLeaderClient::Found(const std::string& address,
                                const std::shared_ptr<grpc::Channel>& channel) {
  base::MutexLock lock(&mu_);
  leader_ = address;
  channel_ = channel;
}

}  // namespace muster::client
