// SPDX-License-Identifier: Apache-2.0
#include "muster/rpc/health_service.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/async_stream.h"
#include "grpcpp/support/async_unary_call.h"
#include "muster/base/text.h"
#include "muster/rpc/queued_call.h"
#include "muster/rpc/status.h"

namespace muster::rpc {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

namespace {

// A supervisor has one for each service, and anyone may open them. Each costs some 15 KiB.
constexpr size_t kMaxWatchers = 4096;

// No service has it.
constexpr char kNoService[] = "?";

}  // namespace

class HealthService::Call : public QueuedCall {
 public:
  explicit Call(HealthService* health) : health_(health) {
    base::MutexLock lock(&health_->mu_);
    ++health_->calls_;
  }
  ~Call() override {
    base::MutexLock lock(&health_->mu_);
    if (--health_->calls_ == 0) health_->call_over_.NotifyAll();
  }

 protected:
  // What the caller has sent goes with the answer: four megabytes of fields that nobody knows take
  // thirty times as much in memory, and a watch lasts for days.
  std::string TakeService() {
    HealthCheckRequest asked;
    asked.Swap(&request_);
    return std::move(*asked.mutable_service());
  }

  HealthService* const health_;  // not owned
  grpc::ServerContext context_;
  HealthCheckRequest request_;
  Tag begun_{this, Event::kBegun};
  Tag finished_{this, Event::kFinished};
};

class HealthService::Checker final : public Call {
 public:
  explicit Checker(HealthService* health) : Call(health) {
    grpc::ServerCompletionQueue* const queue = health_->queue_.get();
    health_->RequestCheck(&context_, &request_, &answer_, queue, queue, &begun_);
  }

  void On(Event event, bool ok) override {
    if (event == Event::kFinished || !ok) {
      delete this;
      return;
    }
    health_->Expect<Checker>();
    const std::string service = TakeService();
    HealthCheckResponse response;
    {
      base::MutexLock lock(&health_->mu_);
      response.set_status(health_->StatusLocked(service));
    }
    if (response.status() == HealthCheckResponse::SERVICE_UNKNOWN) {
      answer_.FinishWithError(ToGrpc(absl::NotFoundError(absl::StrCat(
                                  "no service ", base::Quoted(service), " is served here"))),
                              &finished_);
    } else {
      answer_.Finish(response, grpc::Status::OK, &finished_);
    }
  }

 private:
  grpc::ServerAsyncResponseWriter<HealthCheckResponse> answer_{&context_};
};

// The service decides the next step under its lock (NextLocked) and does it without the lock. After
// a decision to write, `writing` stays set, and the call is not finished while it is: so the call,
// and this object, live until the deciding thread has done the write.
class HealthService::Watcher final : public Call {
 public:
  explicit Watcher(HealthService* health) : Call(health) {
    context_.AsyncNotifyWhenDone(&over_);
    grpc::ServerCompletionQueue* const queue = health_->queue_.get();
    health_->RequestWatch(&context_, &request_, &stream_, queue, queue, &begun_);
  }
  ~Watcher() override {
    base::MutexLock lock(&health_->mu_);
    health_->watchers_.erase(this);
  }

  void On(Event event, bool ok) override {
    if (event == Event::kBegun && !ok) {
      delete this;
      return;
    }
    if (event == Event::kBegun) {
      health_->Expect<Watcher>();
      service_ = TakeService();
    }
    Action action = Action::kNone;
    bool nothing_to_come = false;
    {
      base::MutexLock lock(&health_->mu_);
      NoteLocked(event, ok);
      nothing_to_come = over_seen_ && finish_seen_;
      action = health_->NextLocked(this);
    }
    Do(action);
    if (nothing_to_come) delete this;
  }

  void Do(Action action) {
    if (action == Action::kWrite) stream_.Write(response_, &written_);
    if (action == Action::kFinish) stream_.Finish(end_, &finished_);
  }

 private:
  friend class HealthService;

  void NoteLocked(Event event, bool ok) ABSL_EXCLUSIVE_LOCKS_REQUIRED(health_->mu_) {
    switch (event) {
      case Event::kBegun:
        // A name may have megabytes, and an assigned string keeps its room.
        if (!health_->ready_.contains(service_)) std::string(kNoService).swap(service_);
        if (health_->watchers_.size() < kMaxWatchers) {
          health_->watchers_.insert(this);
        } else {
          left_ = true;
          end_ = {grpc::StatusCode::RESOURCE_EXHAUSTED, "too many watch this server: use Check"};
        }
        break;
      case Event::kWritten:
        writing_ = false;
        left_ |= !ok;
        break;
      case Event::kFinished:
        finish_seen_ = true;
        break;
      case Event::kOver:
        over_seen_ = left_ = true;
        break;
    }
  }

  grpc::ServerAsyncWriter<HealthCheckResponse> stream_{&context_};
  Tag written_{this, Event::kWritten};
  Tag over_{this, Event::kOver};
  std::string service_;
  // All guarded by the service's lock; the response is gRPC's while `writing_`.
  grpc::Status end_{grpc::StatusCode::UNAVAILABLE, "the server is stopping"};
  HealthCheckResponse response_;
  std::optional<Response::ServingStatus> told_;
  bool writing_ = false;
  bool left_ = false;       // the peer has gone, or is to go
  bool finishing_ = false;  // Finish was decided on
  bool finish_seen_ = false, over_seen_ = false;
};

HealthService::HealthService(const std::vector<std::string>& services,
                             std::unique_ptr<grpc::ServerCompletionQueue> queue)
    : queue_(std::move(queue)) {
  base::MutexLock lock(&mu_);
  ready_[""] = false;
  for (const std::string& service : services) ready_[service] = false;
}

HealthService::~HealthService() { End(); }

void HealthService::Serve() {
  Expect<Checker>();
  Expect<Watcher>();
  thread_ = std::thread([this] { RunCalls(queue_.get()); });
}

// Nothing may be begun on a queue that was shut down, so the calls come to their end before.
void HealthService::End() {
  if (std::exchange(ended_, true)) return;
  {
    base::MutexLock lock(&mu_);
    while (calls_ > 0) call_over_.Wait(&mu_);
  }
  queue_->Shutdown();
  if (thread_.joinable()) {
    thread_.join();
  } else {
    RunCalls(queue_.get());
  }
}

template <typename Kind>
void HealthService::Expect() {
  {
    base::MutexLock lock(&mu_);
    if (draining_) return;
  }
  new Kind(this);
}

void HealthService::SetReady(bool ready) {
  std::vector<Step> steps;
  {
    base::MutexLock lock(&mu_);
    for (auto& [service, service_ready] : ready_) service_ready = ready;
    steps = NextOfAllLocked();
  }
  Do(steps);
}

void HealthService::SetServiceReady(const std::string& service, bool ready) {
  std::vector<Step> steps;
  {
    base::MutexLock lock(&mu_);
    if (const auto found = ready_.find(service); found != ready_.end()) found->second = ready;
    steps = NextOfAllLocked();
  }
  Do(steps);
}

void HealthService::Drain() {
  std::vector<Step> steps;
  {
    base::MutexLock lock(&mu_);
    draining_ = true;
    steps = NextOfAllLocked();
  }
  Do(steps);
}

HealthCheckResponse::ServingStatus HealthService::StatusLocked(const std::string& service) const {
  const auto found = ready_.find(service);
  if (found == ready_.end()) return HealthCheckResponse::SERVICE_UNKNOWN;
  return found->second && !draining_ ? HealthCheckResponse::SERVING
                                     : HealthCheckResponse::NOT_SERVING;
}

HealthService::Action HealthService::NextLocked(Watcher* watcher) {
  if (watcher->writing_ || watcher->finishing_) return Action::kNone;
  const HealthCheckResponse::ServingStatus status = StatusLocked(watcher->service_);
  if (!watcher->left_ && watcher->told_ != status) {
    watcher->told_ = status;
    watcher->response_.set_status(status);
    watcher->writing_ = true;
    return Action::kWrite;
  }
  if (!watcher->left_ && !draining_) return Action::kNone;
  watcher->finishing_ = true;
  return Action::kFinish;
}

std::vector<HealthService::Step> HealthService::NextOfAllLocked() {
  std::vector<Step> steps;
  for (Watcher* watcher : watchers_) steps.emplace_back(watcher, NextLocked(watcher));
  return steps;
}

void HealthService::Do(const std::vector<Step>& steps) {
  for (const auto& [watcher, action] : steps) {
    // One that has nothing to do may be gone by now.
    if (action != Action::kNone) watcher->Do(action);
  }
}

}  // namespace muster::rpc
