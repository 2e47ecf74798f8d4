// grpc.health.v1.Health: whether this server, and each of its services, takes calls now. An own
// one, because the one within gRPC is invisible to reflection, and ends no Watch when it drains.
//
// Its calls hold no thread each: all of them are on one queue, with one thread. gRPC's own way to
// that, callbacks, is not for a server that somebody waits for: the threads behind them look for a
// second and then sleep for 100 ms (gRPC 1.51), and the server has them read every connection that
// fell to them, whichever service it is for.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
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
  void Serve();

  void SetReady(bool ready);
  // Of one service; a name that is not served is ignored.
  void SetServiceReady(const std::string& service, bool ready);
  // Nothing is ready any more, for good. Watchers hear that and are sent away, because a running
  // Watch would keep the server from ending.
  void Drain();

  // The server has drained, or never started. Returns when all calls are over. Twice is fine.
  void End();

 private:
  using Response = grpc::health::v1::HealthCheckResponse;
  class Call;
  class Checker;
  class Watcher;
  struct Tag;
  enum class Event { kBegun, kWritten, kFinished, kOver };
  enum class Action { kNone, kWrite, kFinish };
  using Step = std::pair<Watcher*, Action>;

  void Run();
  // Waits for the next call of this kind, unless there will be none.
  template <typename Kind>
  void Expect();
  Response::ServingStatus StatusLocked(const std::string& service) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // What `watcher` has to do next. Who asks must do it, without the lock: until then the watcher
  // stays alive.
  Action NextLocked(Watcher* watcher) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::vector<Step> NextOfAllLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  static void Do(const std::vector<Step>& steps);

  const std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  bool ended_ = false;  // for Serve and End

  base::Mutex mu_;
  base::CondVar call_over_;
  std::map<std::string, bool> ready_ ABSL_GUARDED_BY(mu_);
  bool draining_ ABSL_GUARDED_BY(mu_) = false;
  int calls_ ABSL_GUARDED_BY(mu_) = 0;  // those that are waited for, too; each deletes itself
  std::set<Watcher*> watchers_ ABSL_GUARDED_BY(mu_);  // whose calls run

  std::thread thread_;  // last: it uses all of these
};

}  // namespace muster::rpc
