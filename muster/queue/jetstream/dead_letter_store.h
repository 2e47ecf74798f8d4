// SPDX-License-Identifier: Apache-2.0

// DeadLetterStore: the poison messages of a queue. Each lies in the second stream of the queue,
// under a subject of its own, with its cause in a header. So a message is stored once, however
// often it is set aside.
//
// Their order, and their ids, are those of their places in that stream: a page is found and read at
// once, however many there are. A server that is asked for all subjects of a hundred thousand takes
// seconds.
#pragma once

#include <cstdint>
#include <optional>
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

// A server takes 2 s to purge 100,000 messages of a stream that stays, when other work keeps its
// machine busy, and a call has an end.
inline constexpr uint64_t kPurgeStep = 25'000;

// Returns the statuses of JetStream. Thread-safe.
class DeadLetterStore {
 public:
  // `jetstream` is not owned. `purge_step`: places of the stream that are purged together.
  explicit DeadLetterStore(nats::JetStream* jetstream, uint64_t purge_step = kPurgeStep)
      : jetstream_(jetstream), purge_step_(purge_step) {}

  // Stores a copy of `message`. The message itself stays in its queue.
  absl::Status Add(const queue::QueueId& queue, const nats::StoredMessage& message,
                   const queue::Cause& cause);
  // Returns messages in the order in which they were added, starting behind the place of the
  // message with the id `after`, whether it is still there or not; empty: with the first.
  // InvalidArgument: `after` is no id of a poison message of the queue.
  absl::StatusOr<std::vector<queue::PoisonMessage>> List(const queue::QueueId& queue,
                                                         absl::string_view after, int max_messages);
  // One for each name; nullopt: it is not here.
  absl::StatusOr<std::vector<std::optional<queue::PoisonMessage>>> FindAll(
      const queue::QueueId& queue, absl::Span<const queue::PoisonName> names);
  // Puts a copy of each message into the queue, then removes it here: of the messages with these
  // ids, in the order of the list, of which it skips those that are not here; without ids, of the
  // first `max_messages`. Returns how many; an error only when there were none. Leaves alone what
  // is added meanwhile.
  absl::StatusOr<int64_t> Redrive(const queue::QueueId& queue, absl::Span<const std::string> ids,
                                  int64_t max_messages);
  // Leaves alone what is added meanwhile. After an error a part may be gone.
  absl::StatusOr<int64_t> Purge(const queue::QueueId& queue);
  // Removes the messages with these ids that are here. Returns how many.
  absl::StatusOr<int64_t> Drop(const queue::QueueId& queue, absl::Span<const std::string> ids);
  absl::StatusOr<int64_t> Count(const queue::QueueId& queue);

 private:
  // nullopt: no message with this id is here.
  absl::StatusOr<std::optional<nats::StoredMessage>> Find(const queue::QueueId& queue,
                                                          absl::string_view id);
  absl::StatusOr<std::optional<nats::StoredMessage>> FindReceived(const queue::QueueId& queue,
                                                                  const MessageKey& key);
  absl::StatusOr<int64_t> RedriveOldest(const queue::QueueId& queue, int64_t max_messages);
  // Returns how many: one, or none if another call has redriven it, or removed it, meanwhile.
  absl::StatusOr<int64_t> RedriveOne(const queue::QueueId& queue,
                                     const nats::StoredMessage& stored);

  nats::JetStream* const jetstream_;  // not owned
  const uint64_t purge_step_;
};

}  // namespace muster::queue::jetstream
