// SPDX-License-Identifier: Apache-2.0
#include "muster/rpc/health_service.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "grpcpp/support/async_stream.h"
#include "grpcpp/support/async_unary_call.h"
#include "muster/base/text.h"
#include "muster/rpc/status.h"

namespace muster::rpc {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

namespace {

// A supervisor has one for each service, and anyone may open them. Each costs some 15 KiB.
constexpr size_t kMaxWatchers = 4096;

// No service has it.
constexpr char kNoService[] = "?";

// What the caller has sent goes with the answer: four megabytes of fields that nobody knows take
// thirty times as much in memory, and a watch lasts for days.
std::string TakeService(HealthCheckRequest* request) {
  HealthCheckRequest asked;
  asked.Swap(request);
  return std::move(*asked.mutable_service());
}

}  // namespace

class HealthService::Checker final : public QueuedCall {
 public:
  explicit Checker(HealthService* health) : QueuedCall(health), health_(health) {
    health_->RequestCheck(&context_, &request_, &answer_, health_->queue(), health_->queue(),
                          &begun_);
  }

  void On(Event event, bool) override {
    if (event == Event::kFinished) {
      delete this;
      return;
    }
    if (health_->expects_more()) new Checker(health_);
    const std::string service = TakeService(&request_);
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
  HealthService* const health_;  // not owned
  HealthCheckRequest request_;
  grpc::ServerAsyncResponseWriter<HealthCheckResponse> answer_{&context_};
};

class HealthService::Watcher final : public WritingCall {
 public:
  explicit Watcher(HealthService* health) : WritingCall(health), health_(health) {
    context_.AsyncNotifyWhenDone(&over_);
    health_->RequestWatch(&context_, &request_, &stream_, health_->queue(), health_->queue(),
                          &begun_);
  }
  ~Watcher() override {
    base::MutexLock lock(&health_->mu_);
    health_->watchers_.erase(this);
  }

  void Do(Action action) override {
    if (action == Action::kWrite) stream_.Write(response_, &written_);
    if (action == Action::kFinish) stream_.Finish(end_, &finished_);
  }

 private:
  void Begin() override {
    if (health_->expects_more()) new Watcher(health_);
    service_ = TakeService(&request_);
    base::MutexLock lock(&health_->mu_);
    // A name may have megabytes, and an assigned string keeps its room.
    if (!health_->ready_.contains(service_)) std::string(kNoService).swap(service_);
    if (health_->watchers_.size() < kMaxWatchers) {
      health_->watchers_.insert(this);
    } else {
      left_ = true;
      end_ = {grpc::StatusCode::RESOURCE_EXHAUSTED, "too many watch this server: use Check"};
    }
  }

  Action DecideLocked() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(health_->mu_) {
    const HealthCheckResponse::ServingStatus status = health_->StatusLocked(service_);
    if (!left_ && told_ != status) {
      told_ = status;
      response_.set_status(status);
      return Action::kWrite;
    }
    return left_ || health_->draining_ ? Action::kFinish : Action::kNone;
  }

  HealthService* const health_;  // not owned
  HealthCheckRequest request_;
  grpc::ServerAsyncWriter<HealthCheckResponse> stream_{&context_};
  std::string service_;
  // All guarded by the service's lock.
  grpc::Status end_{grpc::StatusCode::UNAVAILABLE, "the server is stopping"};
  HealthCheckResponse response_;  // gRPC's while it is written
  std::optional<Response::ServingStatus> told_;
};

HealthService::HealthService(const std::vector<std::string>& services) {
  base::MutexLock lock(&mu_);
  ready_[""] = false;
  for (const std::string& service : services) ready_[service] = false;
}

HealthService::~HealthService() { End(); }

void HealthService::ExpectFirst() {
  new Checker(this);
  new Watcher(this);
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

std::vector<HealthService::Step> HealthService::NextOfAllLocked() {
  std::vector<Step> steps;
  for (Watcher* watcher : watchers_) steps.emplace_back(watcher, NextLocked(watcher));
  return steps;
}

}  // namespace muster::rpc
