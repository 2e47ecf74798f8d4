// SPDX-License-Identifier: Apache-2.0

// QueueStatsReader: counts the waiting and the leased messages of a queue.
//
// The stream knows which messages are stored, the consumer which were delivered and acknowledged.
// The server writes the two to disk separately: after its death they may disagree for good. Seen
// with 2.9.10:
//
//   leftovers   acknowledged messages are back in the stream. The server never delivers them
//               again. They count as in flight, which only a Receive can disprove. They are removed
//               after they were seen twice while no acknowledgement is awaited.
//   ack floor   the acknowledgement of a delivery of before the death may move the floor beyond
//               messages that are leased: it does not prove that they are settled.
//   phantoms    the consumer waits for acknowledgements of messages that the stream does not have.
//               The server forgets them once the stream holds nothing older, so leftovers go first.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/base/clock.h"
#include "muster/nats/jetstream.h"
#include "muster/queue/queue_store.h"

namespace muster::queue::jetstream {

// Thread-safe.
class QueueStatsReader {
 public:
  // Neither pointer is owned.
  QueueStatsReader(queue::QueueId id, nats::JetStream* jetstream, base::Clock* clock)
      : id_(std::move(id)), jetstream_(jetstream), clock_(clock) {}

  // Returns all statistics except those of poison. `stream` was read no later than `consumer`.
  absl::StatusOr<queue::QueueStats> Collect(const nats::StreamState& stream,
                                            const nats::ConsumerState& consumer);

 private:
  absl::Status RemoveLeftovers(const nats::StreamState& stream,
                               const nats::ConsumerState& consumer);

  const queue::QueueId id_;
  nats::JetStream* const jetstream_;  // not owned
  base::Clock* const clock_;          // not owned
  // The first sequence of the stream when it last seemed to be a leftover; 0: it did not.
  std::atomic<uint64_t> suspect_ = 0;
};

}  // namespace muster::queue::jetstream
