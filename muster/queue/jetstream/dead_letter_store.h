// SPDX-License-Identifier: Apache-2.0

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
#include "muster/queue/jetstream/stream_layout.h"
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
  // Returns messages in the order of their keys, starting behind the message with the id `after`;
  // empty: with the first. InvalidArgument: `after` is no id of the queue.
  //
  // A message has the id of its sequence. Of several with one sequence, from several lives of the
  // stream, the newest has it, and the ids of the others also tell when they were stored.
  absl::StatusOr<std::vector<queue::PoisonMessage>> List(const queue::QueueId& queue,
                                                         absl::string_view after, int max_messages);
  // Puts a copy of each message into the queue, then removes it here: of the messages with these
  // ids, of which it skips those that are not here; without ids, of the first `max_messages`.
  // Returns how many.
  absl::StatusOr<int64_t> Redrive(const queue::QueueId& queue, absl::Span<const std::string> ids,
                                  int64_t max_messages);
  absl::StatusOr<int64_t> Purge(const queue::QueueId& queue);
  // Removes the messages with these ids that are here. Returns how many.
  absl::StatusOr<int64_t> Drop(const queue::QueueId& queue, absl::Span<const std::string> ids);
  absl::StatusOr<int64_t> Count(const queue::QueueId& queue);

 private:
  // In ascending order.
  absl::StatusOr<std::vector<MessageKey>> Keys(const queue::QueueId& queue);
  absl::StatusOr<int64_t> RedriveAll(const queue::QueueId& queue,
                                     absl::Span<const MessageKey> keys);

  nats::JetStream* const jetstream_;  // not owned
};

}  // namespace muster::queue::jetstream
