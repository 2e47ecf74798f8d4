// SPDX-License-Identifier: Apache-2.0
#include "cli/scale/agent_client.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "grpcpp/client_context.h"
#include "muster/base/mutex.h"
#include "muster/base/proto_time.h"
#include "muster/base/status.h"
#include "muster/client/batch.h"
#include "muster/rpc/channel.h"
#include "muster/rpc/status.h"

namespace muster::cli {

absl::StatusOr<std::unique_ptr<ScalingAgentClient>> ScalingAgentClient::Find(
    const CommonOptions& options) {
  MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<MeshClient> mesh,
                          MeshClient::Open(options, "the scaling agent is found by a server"));
  return std::unique_ptr<ScalingAgentClient>(new ScalingAgentClient(std::move(mesh)));
}

ScalingAgentClient::ScalingAgentClient(std::unique_ptr<MeshClient> mesh)
    : mesh_(std::move(mesh)), leading_([this] { return Addresses(); }, mesh_->channel_options()) {}

absl::StatusOr<std::vector<std::string>> ScalingAgentClient::Addresses() {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<v1::Instance> instances,
                          mesh_->Instances(v1::ROLE_SCALING_AGENT));
  std::vector<std::string> addresses;
  for (const v1::Instance& instance : instances) {
    if (Serves(instance)) addresses.push_back(instance.info().address());
  }
  if (!addresses.empty()) return addresses;
  return absl::UnavailableError(
      absl::StrCat(mesh_->options().address,
                   ": it has heard of no scaling agent; start one with muster-scaling-agent "
                   "--rules FILE"));
}

namespace {

// Enough for a full catch-up list, of which each decision is told at most twice.
constexpr size_t kRememberedTellings = size_t{4} * kMaxListedDecisions;

// Cancels a call that has not begun within `limit`. A watch has no deadline that would do it.
class BeginLimit {
 public:
  BeginLimit(grpc::ClientContext* context, absl::Duration limit)
      : context_(context), thread_([this, limit] { Wait(limit); }) {}
  ~BeginLimit() {
    Begun();
    thread_.join();
  }
  BeginLimit(const BeginLimit&) = delete;
  BeginLimit& operator=(const BeginLimit&) = delete;

  // False: it was cancelled already.
  bool Begun() {
    base::MutexLock lock(&mu_);
    has_begun_ = true;
    changed_.NotifyAll();
    return !is_late_;
  }

 private:
  void Wait(absl::Duration limit) {
    base::Clock* const clock = base::RealClock();
    const absl::Duration deadline = clock->Monotonic() + limit;
    base::MutexLock lock(&mu_);
    while (!has_begun_ && clock->Monotonic() < deadline) {
      clock->WaitUntil(&changed_, &mu_, deadline);
    }
    is_late_ = !has_begun_;
    if (is_late_) context_->TryCancel();
  }

  grpc::ClientContext* const context_;  // not owned
  base::Mutex mu_;
  base::CondVar changed_;
  bool has_begun_ ABSL_GUARDED_BY(mu_) = false;
  bool is_late_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

// Waits until the agent has begun the watch, so that it sends every later decision, or has refused
// it. False: the agent did not answer within `limit`.
bool AwaitBegin(grpc::ClientReader<v1::WatchDecisionsResponse>* watch, grpc::ClientContext* context,
                absl::Duration limit) {
  BeginLimit begin_limit(context, limit);
  watch->WaitForInitialMetadata();
  return begin_limit.Begun();
}

absl::Status Silence() { return absl::DeadlineExceededError("the watch does not begin"); }

}  // namespace

absl::Status DecisionFeed::Follow(const std::function<void(const absl::Status&)>& on_trouble,
                                  base::Clock* clock, const std::stop_token& stop) {
  client::RetryBackoff patience(client::kDefaultPatience, on_trouble, clock);
  while (true) {
    const absl::Status ended = agent_->leading().Ask(
        absl::InfiniteDuration(), [&](ScalingStub& stub, absl::Duration) -> absl::Status {
          if (stop.stop_requested()) return absl::OkStatus();
          return FollowOne(stub, &patience, stop);
        });
    MUSTER_RETURN_IF_ERROR(patience.WaitAfter(
        ended.ok() ? absl::UnavailableError("the scaling agent ended the watch") : ended, stop));
  }
}

absl::Status DecisionFeed::FollowOne(ScalingStub& stub, client::RetryBackoff* patience,
                                     const std::stop_token& stop) {
  grpc::ClientContext context;
  const std::stop_callback cancel(stop, [&context] { context.TryCancel(); });
  v1::WatchDecisionsRequest request;
  request.set_target(target_);
  const auto reader = stub.WatchDecisions(&context, request);
  // Catch up after the watch has begun, so that no decision is missed; TellOnce drops those that
  // come twice.
  const absl::Status caught_up =
      AwaitBegin(reader.get(), &context, agent_->timeout()) ? CatchUp(stub) : Silence();
  if (!caught_up.ok()) {
    context.TryCancel();
    (void)reader->Finish();
    return caught_up;
  }
  patience->Refresh();
  v1::WatchDecisionsResponse response;
  while (reader->Read(&response)) {
    patience->Refresh();
    TellOnce(response.decision());
  }
  const absl::Status ended = rpc::FromGrpc(reader->Finish());
  return ended.ok() ? absl::UnavailableError("it leads no more, or stops") : ended;
}

absl::Status DecisionFeed::CatchUp(ScalingStub& stub) {
  v1::ListDecisionsRequest request;
  request.set_target(target_);
  request.set_page_size(began_ ? kMaxListedDecisions : limit_);
  rpc::CallContext context(agent_->timeout());
  v1::ListDecisionsResponse listed;
  MUSTER_RETURN_IF_ERROR(rpc::FromGrpc(stub.ListDecisions(&context, request, &listed)));
  std::reverse(listed.mutable_decisions()->begin(), listed.mutable_decisions()->end());
  for (const v1::ScalingDecision& decision : listed.decisions()) {
    const absl::Time decided = base::FromProto(decision.decided());
    // The first list sets since_: later lists must not tell decisions from before it.
    if (!began_ && listed.decisions_size() == limit_) since_ = std::min(since_, decided);
    if (!began_ || decided >= since_) TellOnce(decision);
  }
  if (listed.decisions_size() < limit_ && !began_) since_ = absl::InfinitePast();
  began_ = true;
  return absl::OkStatus();
}

void DecisionFeed::TellOnce(const v1::ScalingDecision& decision) {
  const std::pair<std::string, int> telling = {decision.id(), decision.action().state()};
  if (std::find(told_.rbegin(), told_.rend(), telling) != told_.rend()) return;
  told_.push_back(telling);
  if (told_.size() > kRememberedTellings) told_.pop_front();
  tell_(decision);
}

}  // namespace muster::cli
