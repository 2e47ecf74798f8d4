// grpc.health.v1.Health: whether this server, and each of its services, takes calls now. An own
// one, because the one within gRPC is invisible to reflection, and ends no Watch when it drains.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "muster/base/mutex.h"

namespace muster::rpc {

// Thread-safe. Outlives the server that it is registered with.
class HealthService final : public grpc::health::v1::Health::CallbackService {
 public:
  // The server as a whole goes by the empty name. Nothing is ready at first.
  explicit HealthService(const std::vector<std::string>& services);
  ~HealthService() override;

  void SetReady(bool ready);
  // Of one service; a name that is not served is ignored.
  void SetServiceReady(const std::string& service, bool ready);
  // Nothing is ready any more, for good. Watchers hear that and are sent away, because a running
  // Watch would keep the server from ending.
  void Drain();

  // NotFound for a name that is not served.
  grpc::ServerUnaryReactor* Check(grpc::CallbackServerContext* context,
                                  const grpc::health::v1::HealthCheckRequest* request,
                                  grpc::health::v1::HealthCheckResponse* response) override;
  // Answers the status now and after each change; SERVICE_UNKNOWN for a name that is not served.
  // Ends with Unavailable when the server drains.
  grpc::ServerWriteReactor<grpc::health::v1::HealthCheckResponse>* Watch(
      grpc::CallbackServerContext* context,
      const grpc::health::v1::HealthCheckRequest* request) override;

 private:
  using Response = grpc::health::v1::HealthCheckResponse;
  class Watcher;
  enum class Action { kNone, kWrite, kFinish };
  using Step = std::pair<Watcher*, Action>;

  Response::ServingStatus StatusLocked(const std::string& service) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // What `watcher` has to do next. Who asks must do it, without the lock: until then the watcher
  // stays alive.
  Action NextLocked(Watcher* watcher) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::vector<Step> NextOfAllLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  static void Do(const std::vector<Step>& steps);

  base::Mutex mu_;
  std::map<std::string, bool> ready_ ABSL_GUARDED_BY(mu_);
  bool draining_ ABSL_GUARDED_BY(mu_) = false;
  std::set<Watcher*> watchers_ ABSL_GUARDED_BY(mu_);  // each deletes itself when its call is over
};

}  // namespace muster::rpc
