// What every RPC of a muster server begins and ends with. A service's method is
//
//   grpc::Status GetBatch(grpc::ServerContext* context, const v1::GetBatchRequest* request,
//                         v1::GetBatchResponse* response) override {
//     return rpc::Answer(*context, [&] { return Get(*request, response); });
//   }
#pragma once

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "grpcpp/server_context.h"
#include "muster/base/clock.h"
#include "muster/rpc/status.h"

namespace muster::rpc {

// DeadlineExceeded when `deadline` is not after `now`. Calls wait for a thread; by the time one is
// free their caller may have given up, and work for nobody only delays the others.
absl::Status RefuseIfLate(absl::Time deadline, absl::Time now);

// Of a status that may pass (Unavailable, ResourceExhausted) with the time after which to try
// again, unless it says one already.
absl::Status WithAdvice(absl::Status status);

// Does `work`, which answers absl::Status, unless the call's deadline has passed.
template <typename Work>
grpc::Status Answer(const grpc::ServerContext& context, Work work,
                    base::Clock* clock = base::RealClock()) {
  const absl::Status late = RefuseIfLate(absl::FromChrono(context.deadline()), clock->Now());
  return ToGrpc(WithAdvice(late.ok() ? work() : late));
}

}  // namespace muster::rpc
