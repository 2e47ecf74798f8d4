// DeadLetterStore: the poison messages of a queue. Each lies in the second stream of the queue,
// under a subject of its own, with its cause in a header. So a message is stored once, however
// often it is set aside.
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

// Returns the statuses of JetStream. Thread-safe.
class DeadLetterStore {
 public:
  // `jetstream` is not owned.
  explicit DeadLetterStore(nats::JetStream* jetstream) : jetstream_(jetstream) {}

  // Stores a copy of `message`. The message itself stays in its queue.
  absl::Status Add(const queue::QueueId& queue, const nats::StoredMessage& message,
                   const queue::Cause& cause);
  // Returns messages in the order of their sequence in the queue, oldest first, starting behind
  // `after`.
  absl::StatusOr<std::vector<queue::PoisonMessage>> List(const queue::QueueId& queue,
                                                         uint64_t after, int max_messages);
  // Puts a copy of each message into the queue, then removes it here. Skips sequences that are not
  // here. Returns how many.
  absl::StatusOr<int64_t> Redrive(const queue::QueueId& queue,
                                  absl::Span<const uint64_t> sequences);
  absl::StatusOr<int64_t> Purge(const queue::QueueId& queue);
  absl::StatusOr<int64_t> Count(const queue::QueueId& queue);
  // In ascending order.
  absl::StatusOr<std::vector<uint64_t>> Sequences(const queue::QueueId& queue);

 private:
  nats::JetStream* const jetstream_;  // not owned
};

}  // namespace muster::queue::jetstream
