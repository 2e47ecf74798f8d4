// DeadLetterStore: the messages of a queue that were given up, each under a subject of its own in
// the queue's second stream, with its cause in a header. So a message is there once, however often
// it is set aside.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "muster/nats/jetstream.h"
#include "muster/queue/queue_store.h"

namespace muster::queue::jetstream {

// Statuses are JetStream's. Thread-safe.
class DeadLetterStore {
 public:
  // `jetstream` is not owned.
  explicit DeadLetterStore(nats::JetStream* jetstream) : jetstream_(jetstream) {}

  // Stores a copy of `message`, which is still in its queue.
  absl::Status Add(const queue::QueueId& queue, const nats::StoredMessage& message,
                   const queue::Cause& cause);
  // Oldest first, by the sequence in the queue; those behind `after` only.
  absl::StatusOr<std::vector<queue::PoisonMessage>> List(const queue::QueueId& queue,
                                                         uint64_t after, int max_messages);
  // Puts a copy of each into the queue, then takes it away here. Those that are not here are
  // skipped. Answers how many.
  absl::StatusOr<int64_t> Redrive(const queue::QueueId& queue,
                                  absl::Span<const uint64_t> sequences);
  absl::StatusOr<int64_t> Purge(const queue::QueueId& queue);
  absl::StatusOr<int64_t> Count(const queue::QueueId& queue);
  // In order.
  absl::StatusOr<std::vector<uint64_t>> Sequences(const queue::QueueId& queue);

 private:
  nats::JetStream* const jetstream_;  // not owned
};

}  // namespace muster::queue::jetstream
