// SPDX-License-Identifier: Apache-2.0
#include "services/scaling-agent/activity_streams.h"

#include "absl/strings/str_cat.h"
#include "grpcpp/support/client_callback.h"
#include "muster/rpc/server.h"
#include "muster/rpc/status.h"

namespace muster::scaling_agent {

using externalscaler::ExternalScaler;
using externalscaler::IsActiveResponse;
using externalscaler::ScaledObjectRef;

namespace {

constexpr char kStopping[] = "this agent is about to stop: ask another one";

// KEDA waits longer and longer after errors, so what passes by itself is none.
absl::Status EndFor(const absl::Status& why) {
  return absl::IsUnavailable(why) ? absl::OkStatus() : why;
}

}  // namespace

// Reads the leader's stream for a relay, which outlives it: a relay ends after its upstream only.
class ActivityStreams::Upstream final : public grpc::ClientReadReactor<IsActiveResponse> {
 public:
  Upstream(ActivityStreams* streams, Stream* relay, std::shared_ptr<ExternalScaler::Stub> leader,
           ScaledObjectRef request)
      : streams_(streams),
        relay_(relay),
        leader_(std::move(leader)),
        request_(std::move(request)),
        context_(std::make_shared<grpc::ClientContext>()) {
    context_->AddMetadata(kPassedOn, "1");
  }

  void Start() {
    leader_->async()->StreamIsActive(context_.get(), &request_, this);
    StartRead(&response_);
    StartCall();
  }
  // To cancel the call; shared, because a cancellation may come when the call has just ended.
  std::shared_ptr<grpc::ClientContext> context() const { return context_; }

  void OnReadDone(bool ok) override {
    if (!ok) return;
    streams_->Tell(relay_, response_.result());
    StartRead(&response_);
  }
  void OnDone(const grpc::Status& status) override {
    streams_->EndRelay(relay_, rpc::FromGrpc(status));  // this object may be gone afterwards
  }

 private:
  ActivityStreams* const streams_;  // not owned
  Stream* const relay_;             // not owned
  const std::shared_ptr<ExternalScaler::Stub> leader_;
  const ScaledObjectRef request_;
  const std::shared_ptr<grpc::ClientContext> context_;
  IsActiveResponse response_;
};

// One call. It deletes itself when it is over.
//
// After a decision to write, `writing_` stays set until gRPC has written, and the call is not
// finished while it is; after the decision to finish nothing else is decided. So the call lives
// until the thread that decided has done the step.
class ActivityStreams::Stream final : public Reactor {
 public:
  Stream(ActivityStreams* streams, std::string target)
      : streams_(streams), target_(std::move(target)) {}

  void OnWriteDone(bool ok) override {
    // Held beyond the lock: as soon as the write is over, another thread may finish the call.
    const auto upstream = !ok && upstream_ != nullptr ? upstream_->context() : nullptr;
    Action action = Action::kNone;
    {
      base::MutexLock lock(&streams_->mu_);
      writing_ = false;
      // A relay ends after its upstream only, which is cancelled below.
      if (!ok && upstream_ == nullptr) {
        streams_->EndLocked(this, absl::CancelledError("the client has gone"));
      }
      if (!ok) {  // no more is written than what is known now
        active_ = told_;
        repeat_ = false;
      }
      action = streams_->NextLocked(this);
    }
    if (upstream != nullptr) upstream->TryCancel();
    if (action != Action::kNone) Do(action);  // else this may be gone by now
  }
  void OnCancel() override {
    if (upstream_ != nullptr) return upstream_->context()->TryCancel();
    Action action = Action::kNone;
    {
      base::MutexLock lock(&streams_->mu_);
      streams_->EndLocked(this, absl::CancelledError("the client has gone"));
      action = streams_->NextLocked(this);
    }
    Do(action);
  }
  void OnDone() override {
    {
      base::MutexLock lock(&streams_->mu_);
      streams_->streams_.erase(this);
      streams_->over_.NotifyAll();
    }
    delete this;
  }

  void Do(Action action) {
    if (action == Action::kWrite) StartWrite(&response_);
    if (action == Action::kFinish) Finish(rpc::ToGrpc(rpc::WithAdvice(end_)));
  }

 private:
  friend class ActivityStreams;

  ActivityStreams* const streams_;      // not owned
  const std::string target_;            // empty: a relay
  std::unique_ptr<Upstream> upstream_;  // of a relay; set before the call begins
  // The rest is guarded by the lock of `streams_`, but the response is gRPC's while `writing_`.
  IsActiveResponse response_;
  std::optional<bool> active_;  // to be told
  std::optional<bool> told_;
  absl::Duration told_at_;  // monotonic
  bool repeat_ = false;     // to be told although it is `told_` already
  bool writing_ = false;
  bool ended_ = false;      // finishes with `end_` as soon as nothing is written
  bool finishing_ = false;  // Finish was decided on
  absl::Status end_;
};

namespace {

class Refusal final : public ActivityStreams::Reactor {
 public:
  explicit Refusal(const absl::Status& why) { Finish(rpc::ToGrpc(rpc::WithAdvice(EndFor(why)))); }
  void OnDone() override { delete this; }
};

}  // namespace

ActivityStreams::~ActivityStreams() {
  Drain();
  base::MutexLock lock(&mu_);
  while (!streams_.empty()) over_.Wait(&mu_);
}

ActivityStreams::Reactor* ActivityStreams::Refuse(const absl::Status& why) {
  return new Refusal(why);
}

void ActivityStreams::Update(const std::string& target, std::optional<int> desired) {
  Steps steps;
  {
    base::MutexLock lock(&mu_);
    if (desired.has_value()) {
      active_[target] = *desired > 0;
    } else {
      active_.erase(target);
    }
    for (Stream* const stream : streams_) {
      if (stream->target_ != target) continue;
      if (desired.has_value()) {
        stream->active_ = *desired > 0;
        stream->repeat_ = *desired > 0 && clock_->Monotonic() - stream->told_at_ >= kActivityRepeat;
      } else {
        EndLocked(stream, absl::UnavailableError("this agent leads no more: ask again"));
      }
      steps.emplace_back(stream, NextLocked(stream));
    }
  }
  Do(steps);
}

absl::Status ActivityStreams::Admit(Stream* stream) {
  base::MutexLock lock(&mu_);
  if (draining_) return absl::UnavailableError(kStopping);
  if (streams_.size() >= most_) {
    return absl::ResourceExhaustedError(
        absl::StrCat("this agent has ", most_, " streams already; IsActive says the same"));
  }
  streams_.insert(stream);
  // Until the first decision of a new leader the stream tells nothing.
  const auto known = active_.find(stream->target_);
  if (known != active_.end()) stream->active_ = known->second;
  return absl::OkStatus();
}

ActivityStreams::Reactor* ActivityStreams::Follow(const std::string& target) {
  auto stream = std::make_unique<Stream>(this, target);
  if (const absl::Status admitted = Admit(stream.get()); !admitted.ok()) return Refuse(admitted);
  Action action = Action::kNone;
  {
    base::MutexLock lock(&mu_);
    action = NextLocked(stream.get());
  }
  stream->Do(action);
  return stream.release();
}

ActivityStreams::Reactor* ActivityStreams::Relay(
    const std::shared_ptr<ExternalScaler::Stub>& leader, const ScaledObjectRef& request) {
  auto relay = std::make_unique<Stream>(this, "");
  relay->upstream_ = std::make_unique<Upstream>(this, relay.get(), leader, request);
  if (const absl::Status admitted = Admit(relay.get()); !admitted.ok()) return Refuse(admitted);
  relay->upstream_->Start();
  return relay.release();
}

void ActivityStreams::Tell(Stream* stream, bool active) {
  Action action = Action::kNone;
  {
    base::MutexLock lock(&mu_);
    stream->active_ = active;
    stream->repeat_ = active;  // the leader knows when to say it again
    action = NextLocked(stream);
  }
  stream->Do(action);
}

void ActivityStreams::EndRelay(Stream* stream, const absl::Status& why) {
  // Only this agent cancels: as it stops, or when the client has gone and gets no status anyway.
  const absl::Status end = absl::IsCancelled(why) ? absl::UnavailableError(kStopping) : why;
  Action action = Action::kNone;
  {
    base::MutexLock lock(&mu_);
    EndLocked(stream, end);
    action = NextLocked(stream);
  }
  stream->Do(action);
}

void ActivityStreams::Drain() {
  Steps steps;
  std::vector<std::shared_ptr<grpc::ClientContext>> calls;
  {
    base::MutexLock lock(&mu_);
    draining_ = true;
    for (Stream* const stream : streams_) {
      if (stream->upstream_ != nullptr) {
        calls.push_back(stream->upstream_->context());
        continue;
      }
      EndLocked(stream, absl::UnavailableError(kStopping));
      steps.emplace_back(stream, NextLocked(stream));
    }
  }
  Do(steps);
  for (const auto& call : calls) call->TryCancel();
}

size_t ActivityStreams::open() const {
  base::MutexLock lock(&mu_);
  return streams_.size();
}

// The first reason counts.
void ActivityStreams::EndLocked(Stream* stream, const absl::Status& why) {
  if (stream->ended_) return;
  stream->ended_ = true;
  stream->end_ = stream->told_.has_value() ? absl::OkStatus() : EndFor(why);
}

ActivityStreams::Action ActivityStreams::NextLocked(Stream* stream) {
  if (stream->writing_ || stream->finishing_) return Action::kNone;
  if (stream->ended_) {
    stream->finishing_ = true;
    return Action::kFinish;
  }
  if (stream->active_ == stream->told_ && !stream->repeat_) return Action::kNone;
  stream->told_ = stream->active_;
  stream->told_at_ = clock_->Monotonic();
  stream->repeat_ = false;
  stream->response_.set_result(*stream->active_);
  stream->writing_ = true;
  return Action::kWrite;
}

void ActivityStreams::Do(const Steps& steps) {
  for (const auto& [stream, action] : steps) {
    // One that has nothing to do may be gone by now.
    if (action != Action::kNone) stream->Do(action);
  }
}

}  // namespace muster::scaling_agent
