// SPDX-License-Identifier: Apache-2.0

// grpc.health.v1.Health: whether this server, and each of its services, takes calls now. muster has
// its own, because reflection does not see the one within gRPC, and that one ends no Watch when it
// drains.
//
// Its calls hold no threads: all of them share one queue with one thread. It does not use gRPC's
// callbacks: their threads poll for a second and then sleep for 100 ms (gRPC 1.51), which is too
// slow for a server that callers wait for, and the server makes them read every connection assigned
// to them, for any service.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "grpc/health/v1/health.grpc.pb.h"
#include "grpcpp/completion_queue.h"
#include "muster/base/mutex.h"

namespace muster::rpc {

// Thread-safe, but for Serve and End. Outlives the server that it is registered with.
class HealthService final : public grpc::health::v1::Health::AsyncService {
 public:
  // The server as a whole goes by the empty name. Nothing is ready at first. `queue` is one of the
  // server that is built.
  HealthService(const std::vector<std::string>& services,
                std::unique_ptr<grpc::ServerCompletionQueue> queue);
  ~HealthService() override;  // End()s

  // The server has started: answers calls from now on.
  //
  // Check is answered NotFound for a name that is not served. Watch is answered the status now and
  // after each change, SERVICE_UNKNOWN for a name that is not served; it ends with Unavailable when
  // the server drains.
  void Serve() ABSL_LOCKS_EXCLUDED(mu_);

  void SetReady(bool ready) ABSL_LOCKS_EXCLUDED(mu_);
  // For one service; a name that is not served is ignored.
  void SetServiceReady(const std::string& service, bool ready) ABSL_LOCKS_EXCLUDED(mu_);
  // Makes everything unready, for good. Watchers get that status and their calls end, because a
  // running Watch would keep the server from stopping.
  void Drain() ABSL_LOCKS_EXCLUDED(mu_);

  // Call when the server has drained, or never started. Returns when all calls are over. Calling it
  // twice is fine.
  void End() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  using Response = grpc::health::v1::HealthCheckResponse;
  class Call;
  class Checker;
  class Watcher;
  enum class Action { kNone, kWrite, kFinish };
  using Step = std::pair<Watcher*, Action>;

  // Waits for the next call of this kind, unless there will be none.
  template <typename Kind>
  void Expect();
  Response::ServingStatus StatusLocked(const std::string& service) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // The next step of `watcher`. The caller must do it, after releasing the lock: until then the
  // watcher stays alive.
  Action NextLocked(Watcher* watcher) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::vector<Step> NextOfAllLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  static void Do(const std::vector<Step>& steps);

  const std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  bool ended_ = false;  // for Serve and End

  base::Mutex mu_;
  base::CondVar call_over_;
  std::map<std::string, bool> ready_ ABSL_GUARDED_BY(mu_);
  bool draining_ ABSL_GUARDED_BY(mu_) = false;
  int calls_ ABSL_GUARDED_BY(mu_) = 0;  // those still waited for, too; each deletes itself
  std::set<Watcher*> watchers_ ABSL_GUARDED_BY(mu_);  // with running calls

  std::thread thread_;  // last: it uses all of these
};

}  // namespace muster::rpc
