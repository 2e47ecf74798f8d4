// SPDX-License-Identifier: Apache-2.0

// Submitting and watching a batch. RetryBackoff: decides how long a client retries without an
// answer.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/channel.h"
#include "muster/base/clock.h"
#include "muster/input/byte_source.h"
#include "muster/v1/batch_service.pb.h"

namespace muster::client {

// Not thread-safe.
class RetryBackoff {
 public:
  // `clock` is not owned. `on_trouble` may be empty. It is called once for each failure that lasts
  // for a second, because a server that has just started may fail for shorter than that.
  RetryBackoff(absl::Duration patience, std::function<void(const absl::Status&)> on_trouble,
               base::Clock* clock)
      : patience_(patience), on_trouble_(std::move(on_trouble)), clock_(clock) {}

  // Call when there was news: the patience begins anew.
  void Refresh() { failures_ = 0, told_ = false; }

  // Waits a while before the next try after the error `trouble`. OK: try again. Returns `trouble`
  // itself when it cannot pass by itself, or has lasted too long. Cancelled: `stop` was requested.
  absl::Status WaitAfter(const absl::Status& trouble, const std::stop_token& stop);

 private:
  const absl::Duration patience_;
  const std::function<void(const absl::Status&)> on_trouble_;
  base::Clock* const clock_;  // not owned
  int failures_ = 0;
  bool told_ = false;
  absl::Duration began_;  // of the failures, when there are any
};

// Submit: uploads a batch to an initiator, and resumes where an upload was cut off.

// A call gives up after so long without news; until then it tries again and again.
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
  // Called once, with the reason, each time the initiator has not answered for a second; may be
  // empty.
  std::function<void(const absl::Status&)> on_trouble;
};

// Returns the batch's status once it is submitted. Reads `content` once, and skips what is durable
// already. The same header always means the same batch, so a caller that was interrupted calls this
// again.
//
// Statuses are those of BatchService.Submit; Unavailable: no news within the patience. Cancelled:
// `stop` was requested.
absl::StatusOr<v1::BatchStatus> Submit(const std::shared_ptr<grpc::Channel>& channel,
                                       const v1::SubmitHeader& header,
                                       const input::ByteSource& content,
                                       const SubmitOptions& options, base::Clock* clock,
                                       const std::stop_token& stop);

// Complete or cancelled.
bool IsOver(const v1::BatchStatus& status);

// Watch: follows a batch, and resumes where the stream was cut off.

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
