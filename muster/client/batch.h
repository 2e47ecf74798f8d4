// RetryBackoff: how long a client goes on trying while nobody answers.
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
  // `clock` is not owned. `on_trouble` may be empty. It is told once of each trouble that lasts for
  // a second: what a server that has just started does not know yet is none.
  RetryBackoff(absl::Duration patience, std::function<void(const absl::Status&)> on_trouble,
               base::Clock* clock)
      : patience_(patience), on_trouble_(std::move(on_trouble)), clock_(clock) {}

  // There was news: trouble begins anew after it.
  void Refresh() { failures_ = 0, told_ = false; }

  // Waits a while before the next try after `trouble`. OK: try again. What is no trouble that may
  // pass, or has lasted too long, comes back as it is. Cancelled: `stop` was requested.
  absl::Status WaitAfter(const absl::Status& trouble, const std::stop_token& stop);

 private:
  const absl::Duration patience_;
  const std::function<void(const absl::Status&)> on_trouble_;
  base::Clock* const clock_;  // not owned
  int failures_ = 0;
  bool told_ = false;
  absl::Duration began_;  // of the trouble, when there were failures
};

// Submit: uploads a batch to an initiator, and goes on where it was cut off.

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

// Watch: follows a batch, and goes on where it was cut off.

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
