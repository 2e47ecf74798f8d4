// Submit: uploads a batch to an initiator, and goes on where it was cut off.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/channel.h"
#include "muster/base/clock.h"
#include "muster/input/byte_source.h"
#include "muster/v1/batch_service.pb.h"

namespace muster::client {

// Without news for so long a call gives up; while it waits it tries again and again.
inline constexpr absl::Duration kDefaultPatience = absl::Minutes(2);

struct SubmitProgress {
  uint64_t batch = 0;
  uint64_t durable = 0;   // bytes that the initiator has on its disk
  uint64_t size = 0;      // of the content
  bool complete = false;  // the batch was, before anything was sent
};

struct SubmitOptions {
  absl::Duration patience = kDefaultPatience;
  // Called whenever more is durable, on a thread of the upload; may be empty.
  std::function<void(const SubmitProgress&)> on_progress;
  // The initiator has not answered for a second; called once for each time, with why; may be empty.
  std::function<void(const absl::Status&)> on_trouble;
};

// The batch's status once it is submitted. `content` is read once, and not again what is durable.
// The same header always means the same batch, so that whoever was interrupted calls this again.
//
// Statuses are those of BatchService.Submit; Unavailable: no news within the patience. Cancelled:
// `stop` was requested.
absl::StatusOr<v1::BatchStatus> Submit(const std::shared_ptr<grpc::Channel>& channel,
                                       const v1::SubmitHeader& header,
                                       const input::ByteSource& content,
                                       const SubmitOptions& options, base::Clock* clock,
                                       const std::stop_token& stop);

}  // namespace muster::client
