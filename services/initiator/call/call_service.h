// SPDX-License-Identifier: Apache-2.0

// CallService: answers calls of single records (proto/muster/v1/call_service.proto). A call holds
// no thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/time/time.h"
#include "grpcpp/completion_queue.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/rpc/server.h"
#include "muster/v1/call_service.grpc.pb.h"
#include "services/initiator/call/call_gatherer.h"

namespace muster::initiator::call {

// Thread-safe, but for Serve and End.
class CallService final : public v1::CallService::WithAsyncMethod_Call<v1::CallService::Service>,
                          public rpc::QueuedCalls {
 public:
  // Neither is owned.
  CallService(CallGatherer* gatherer, base::Clock* clock) : gatherer_(gatherer), clock_(clock) {}
  ~CallService() override;  // End()s

  // rpc::QueuedCalls. Drain drains the gatherer.
  void Serve(std::unique_ptr<grpc::ServerCompletionQueue> queue) override ABSL_LOCKS_EXCLUDED(mu_);
  void Drain() override ABSL_LOCKS_EXCLUDED(mu_);
  void End() override ABSL_LOCKS_EXCLUDED(mu_);

 private:
  class Caller;

  // Waits for the next call, unless there will be none.
  void Expect() ABSL_LOCKS_EXCLUDED(mu_);

  CallGatherer* const gatherer_;  // not owned
  base::Clock* const clock_;      // not owned
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  bool ended_ = false;  // for Serve and End

  base::Mutex mu_;
  base::CondVar call_over_;
  bool draining_ ABSL_GUARDED_BY(mu_) = false;
  int calls_ ABSL_GUARDED_BY(mu_) = 0;  // those still waited for, too; each deletes itself

  std::thread thread_;  // last: it uses all of these
};

}  // namespace muster::initiator::call
