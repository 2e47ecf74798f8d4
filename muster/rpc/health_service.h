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
#include <set>
#include <string>
#include <vector>

#include "grpc/health/v1/health.grpc.pb.h"
#include "muster/base/mutex.h"
#include "muster/rpc/queued_calls.h"

namespace muster::rpc {

// Thread-safe, but for Serve and End. Outlives the server that it is registered with.
//
// Check is answered NotFound for a name that is not served. Watch is answered the status now and
// after each change, SERVICE_UNKNOWN for a name that is not served; it ends with Unavailable when
// the server drains.
class HealthService final : public grpc::health::v1::Health::AsyncService, public QueuedCalls {
 public:
  // The server as a whole goes by the empty name. Nothing is ready at first.
  explicit HealthService(const std::vector<std::string>& services);
  ~HealthService() override;  // End()s

  void SetReady(bool ready) ABSL_LOCKS_EXCLUDED(mu_);
  // For one service; a name that is not served is ignored.
  void SetServiceReady(const std::string& service, bool ready) ABSL_LOCKS_EXCLUDED(mu_);
  // QueuedCalls. Makes everything unready, for good. Watchers get that status and their calls end,
  // because a running Watch would keep the server from stopping.
  void Drain() override ABSL_LOCKS_EXCLUDED(mu_);

 private:
  using Response = grpc::health::v1::HealthCheckResponse;
  class Checker;
  class Watcher;

  void ExpectFirst() override;
  Response::ServingStatus StatusLocked(const std::string& service) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::vector<Step> NextOfAllLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  std::map<std::string, bool> ready_ ABSL_GUARDED_BY(mu_);
  std::set<Watcher*> watchers_ ABSL_GUARDED_BY(mu_);  // with running calls
};

}  // namespace muster::rpc
