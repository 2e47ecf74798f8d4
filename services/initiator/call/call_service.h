// SPDX-License-Identifier: Apache-2.0

// CallService: answers calls of single records (proto/muster/v1/call_service.proto). A call holds
// no thread.
#pragma once

#include "muster/base/clock.h"
#include "muster/rpc/queued_calls.h"
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
  void Drain() override;

 private:
  class Caller;

  void ExpectFirst() override;

  CallGatherer* const gatherer_;  // not owned
  base::Clock* const clock_;      // not owned
};

}  // namespace muster::initiator::call
