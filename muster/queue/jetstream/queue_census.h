// QueueStatsReader: how many messages of a queue wait, and how many are in hand.
//
// The stream knows what is stored, the consumer what was delivered and acknowledged. The server
// writes them to disk apart: after its death they may disagree for good. Seen with 2.9.10:
//
//   leftovers   the stream has messages back that were acknowledged. Nobody is given them any more.
//               They count as in flight, which only a Receive can disprove, and are removed once
//               they were seen twice.
//   phantoms    the consumer waits for the acknowledgement of messages that the stream has not. The
//               server forgets them itself when the stream holds nothing older: leftovers first.
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

  // All statistics but of poison. `stream` was asked for no later than `consumer`.
  absl::StatusOr<queue::QueueStats> Collect(const nats::StreamState& stream,
                                            const nats::ConsumerState& consumer);

 private:
  absl::Status RemoveLeftovers(const nats::StreamState& stream,
                               const nats::ConsumerState& consumer);

  const queue::QueueId id_;
  nats::JetStream* const jetstream_;  // not owned
  base::Clock* const clock_;          // not owned
  // The first sequence that the stream held when it was a leftover's, as it seemed; 0: none was.
  std::atomic<uint64_t> suspect_ = 0;
};

}  // namespace muster::queue::jetstream
