#include "muster/rpc/health_service.h"

#include <optional>

namespace muster::rpc {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

// One Watch call. What it does next is decided under the service's lock (NextLocked) and done
// without it. A write that was decided on keeps `writing` set, and nobody finishes the call while
// it is: so the call, and this, live until whoever decided has done it.
class HealthService::Watcher final : public grpc::ServerWriteReactor<HealthCheckResponse> {
 public:
  Watcher(HealthService* health, std::string service)
      : health_(health), service_(std::move(service)) {}

  void Do(Action action) {
    if (action == Action::kWrite) StartWrite(&response_);
    if (action == Action::kFinish) {
      Finish(grpc::Status(grpc::StatusCode::UNAVAILABLE, "the server is stopping"));
    }
  }

  void OnWriteDone(bool ok) override {
    Continue([this, ok] {
      writing_ = false;
      ended_ |= !ok;
    });
  }
  void OnCancel() override {
    Continue([this] { ended_ = true; });
  }
  void OnDone() override {
    {
      base::MutexLock lock(&health_->mu_);
      health_->watchers_.erase(this);
    }
    delete this;
  }

 private:
  friend class HealthService;

  template <typename Change>
  void Continue(Change change) {
    Action action;
    {
      base::MutexLock lock(&health_->mu_);
      change();
      action = health_->NextLocked(this);
    }
    Do(action);
  }

  HealthService* const health_;  // not owned
  const std::string service_;
  // All guarded by the service's lock; the response is gRPC's while `writing_`.
  HealthCheckResponse response_;
  std::optional<Response::ServingStatus> told_;
  bool writing_ = false;
  bool ended_ = false;     // nobody listens any more
  bool finished_ = false;  // Finish was decided on
};

HealthService::HealthService(const std::vector<std::string>& services) {
  base::MutexLock lock(&mu_);
  ready_[""] = false;
  for (const std::string& service : services) ready_[service] = false;
}

HealthService::~HealthService() = default;

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

grpc::ServerUnaryReactor* HealthService::Check(grpc::CallbackServerContext* context,
                                               const HealthCheckRequest* request,
                                               HealthCheckResponse* response) {
  {
    base::MutexLock lock(&mu_);
    response->set_status(StatusLocked(request->service()));
  }
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  reactor->Finish(response->status() == HealthCheckResponse::SERVICE_UNKNOWN
                      ? grpc::Status(grpc::StatusCode::NOT_FOUND,
                                     "no service '" + request->service() + "' is served here")
                      : grpc::Status::OK);
  return reactor;
}

grpc::ServerWriteReactor<HealthCheckResponse>* HealthService::Watch(
    grpc::CallbackServerContext*, const HealthCheckRequest* request) {
  auto* const watcher = new Watcher(this, request->service());
  Action action;
  {
    base::MutexLock lock(&mu_);
    watchers_.insert(watcher);
    action = NextLocked(watcher);
  }
  watcher->Do(action);
  return watcher;
}

HealthCheckResponse::ServingStatus HealthService::StatusLocked(const std::string& service) const {
  const auto found = ready_.find(service);
  if (found == ready_.end()) return HealthCheckResponse::SERVICE_UNKNOWN;
  return found->second && !draining_ ? HealthCheckResponse::SERVING
                                     : HealthCheckResponse::NOT_SERVING;
}

HealthService::Action HealthService::NextLocked(Watcher* watcher) {
  if (watcher->writing_ || watcher->finished_) return Action::kNone;
  const HealthCheckResponse::ServingStatus status = StatusLocked(watcher->service_);
  if (!watcher->ended_ && watcher->told_ != status) {
    watcher->told_ = status;
    watcher->response_.set_status(status);
    watcher->writing_ = true;
    return Action::kWrite;
  }
  if (!watcher->ended_ && !draining_) return Action::kNone;
  watcher->finished_ = true;
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
