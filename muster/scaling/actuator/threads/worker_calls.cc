#include "muster/scaling/actuator/threads/worker_calls.h"

#include <set>
#include <utility>

#include "muster/base/status_macros.h"
#include "muster/rpc/status.h"

namespace muster::scaling::actuator::threads {
namespace {

using Verb = WorkerCall::Verb;

// How many calls have not answered.
class Outstanding {
 public:
  void Begin() {
    base::MutexLock lock(&mu_);
    ++count_;
  }
  void End() {
    base::MutexLock lock(&mu_);
    --count_;
    changed_.NotifyAll();
  }
  void AwaitNone() {
    base::MutexLock lock(&mu_);
    while (count_ > 0) changed_.Wait(&mu_);
  }

 private:
  base::Mutex mu_;
  base::CondVar changed_;
  int count_ ABSL_GUARDED_BY(mu_) = 0;
};

// A processor works as long as any of its listeners does.
v1::ListenerPhase PhaseOf(const v1::QueryStateResponse& response) {
  std::set<v1::ListenerPhase> phases;
  for (const v1::ListenerState& listener : response.listeners()) phases.insert(listener.phase());
  for (const v1::ListenerPhase phase : {v1::LISTENER_PHASE_LISTENING, v1::LISTENER_PHASE_PAUSED,
                                        v1::LISTENER_PHASE_DRAINING, v1::LISTENER_PHASE_STOPPED}) {
    if (phases.count(phase) != 0) return phase;
  }
  return v1::LISTENER_PHASE_UNSPECIFIED;
}

// One call that runs, with what gRPC needs until it has answered.
class RunningCall {
 public:
  RunningCall(std::shared_ptr<v1::WorkerService::Stub> stub, const WorkerCall& call,
              absl::Duration limit, Outstanding* outstanding)
      : stub_(std::move(stub)), call_(call), context_(limit), outstanding_(outstanding) {}

  void Begin() {
    outstanding_->Begin();
    const auto done = [this](const grpc::Status& status) {
      status_ = rpc::FromGrpc(status);
      outstanding_->End();
    };
    auto* const async = stub_->async();
    switch (call_.verb) {
      case Verb::kQuery:
        query_.set_job(call_.job);
        return async->QueryState(&context_, &query_, &state_, done);
      case Verb::kPark:
        pause_.set_job(call_.job);
        return async->Pause(&context_, &pause_, &paused_, done);
      case Verb::kLetGo:
        resume_.set_job(call_.job);
        return async->Resume(&context_, &resume_, &resumed_, done);
      case Verb::kSetTasks:
        set_.set_job(call_.job);
        set_.mutable_options()->set_max_dequeue_tasks(call_.tasks);
        return async->SetOptions(&context_, &set_, &were_set_, done);
    }
  }
  WorkerAnswer Answer() const { return {status_, PhaseOf(state_)}; }

 private:
  const std::shared_ptr<v1::WorkerService::Stub> stub_;
  const WorkerCall& call_;
  rpc::CallContext context_;
  Outstanding* const outstanding_;  // not owned
  v1::QueryStateRequest query_;
  v1::QueryStateResponse state_;
  v1::PauseRequest pause_;
  v1::PauseResponse paused_;
  v1::ResumeRequest resume_;
  v1::ResumeResponse resumed_;
  v1::SetOptionsRequest set_;
  v1::SetOptionsResponse were_set_;
  absl::Status status_;
};

}  // namespace

WorkerClient::WorkerClient(rpc::ChannelOptions channel, absl::Duration limit)
    : channel_(std::move(channel)), limit_(limit) {
  // Whoever looks each second need not be waited for.
  channel_.retry_unavailable = false;
}

std::vector<WorkerAnswer> WorkerClient::Make(const std::vector<WorkerCall>& calls) {
  Outstanding outstanding;
  std::vector<std::unique_ptr<RunningCall>> running(calls.size());
  std::vector<WorkerAnswer> answers(calls.size());
  for (size_t i = 0; i < calls.size(); ++i) {
    absl::StatusOr<std::shared_ptr<Stub>> stub = StubOf(calls[i].address);
    answers[i].status = stub.status();
    if (!stub.ok()) continue;
    running[i] = std::make_unique<RunningCall>(*std::move(stub), calls[i], limit_, &outstanding);
    running[i]->Begin();
  }
  outstanding.AwaitNone();
  for (size_t i = 0; i < calls.size(); ++i) {
    if (running[i] != nullptr) answers[i] = running[i]->Answer();
  }
  return answers;
}

void WorkerClient::KeepOnly(const std::vector<std::string>& addresses) {
  const std::set<std::string> kept(addresses.begin(), addresses.end());
  std::map<std::string, std::shared_ptr<Stub>> gone;  // die after the lock is let go
  base::MutexLock lock(&mu_);
  for (auto stub = stubs_.begin(); stub != stubs_.end();) {
    const auto next = std::next(stub);
    if (kept.count(stub->first) == 0) gone.insert(stubs_.extract(stub));
    stub = next;
  }
}

size_t WorkerClient::connections() const {
  base::MutexLock lock(&mu_);
  return stubs_.size();
}

absl::StatusOr<std::shared_ptr<WorkerClient::Stub>> WorkerClient::StubOf(
    const std::string& address) {
  base::MutexLock lock(&mu_);
  std::shared_ptr<Stub>& stub = stubs_[address];
  if (stub == nullptr) {
    const auto channel = rpc::OpenChannel(address, channel_);
    MUSTER_RETURN_IF_ERROR(channel.status());
    stub = v1::WorkerService::NewStub(*channel);
  }
  return stub;
}

}  // namespace muster::scaling::actuator::threads
