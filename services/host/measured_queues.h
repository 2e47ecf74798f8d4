// MeasuredQueues: a queue store that counts the calls, redeliveries and dead letters of each queue.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "muster/queue/queue_store.h"
#include "muster/queue/store_decorators.h"
#include "muster/telemetry/registry.h"

namespace muster::host {

// Thread-safe.
class MeasuredQueues final : public queue::InterceptedStore {
 public:
  // Owns `behind`. `metrics` is not owned and outlives it.
  MeasuredQueues(std::unique_ptr<queue::QueueStore> behind, telemetry::Registry* metrics);

  absl::StatusOr<std::vector<queue::Message>> Receive(
      const queue::QueueId& queue, const queue::ReceiveOptions& options) override;
  absl::StatusOr<std::unique_ptr<Wait>> AwaitMessage(const queue::QueueId& queue,
                                                     absl::Duration patience,
                                                     TakeMessage take) override;
  absl::StatusOr<std::vector<absl::Status>> DeadLetter(
      const queue::QueueId& queue, absl::Span<const queue::DeadLetterRequest> requests) override;

 protected:
  absl::Status Before(queue::Verb, const queue::QueueId&) override { return absl::OkStatus(); }
  void After(queue::Verb verb, const queue::QueueId& queue, bool useful) override;

 private:
  void CountRedelivery(const queue::QueueId& queue, const queue::Message& message) const;

  const std::unique_ptr<queue::QueueStore> owned_;
  const telemetry::Counters<3> calls_;
  const telemetry::Counters<1> redeliveries_;
  const telemetry::Counters<1> dead_letters_;
};

}  // namespace muster::host
