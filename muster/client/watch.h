// Watch: follows a batch, and goes on where it was cut off.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/channel.h"
#include "muster/base/clock.h"
#include "muster/client/submit.h"
#include "muster/v1/batch_service.pb.h"

namespace muster::client {

struct WatchOptions {
  absl::Duration patience = kDefaultPatience;
  // Each status, on the calling thread; may be empty.
  std::function<void(const v1::BatchStatus&)> on_status;
  // As SubmitOptions::on_trouble.
  std::function<void(const absl::Status&)> on_trouble;
};

// The last status: complete or cancelled. Statuses are those of BatchService.WatchBatch;
// Unavailable: no news within the patience. Cancelled: `stop` was requested.
absl::StatusOr<v1::BatchStatus> Watch(const std::shared_ptr<grpc::Channel>& channel, uint64_t batch,
                                      const WatchOptions& options, base::Clock* clock,
                                      const std::stop_token& stop);

}  // namespace muster::client
