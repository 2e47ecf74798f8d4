// SPDX-License-Identifier: Apache-2.0
#include "muster/queue/jetstream/queue_stats_reader.h"

#include <algorithm>

#include "absl/time/time.h"
#include "muster/base/status.h"
#include "muster/queue/jetstream/stream_layout.h"

namespace muster::queue::jetstream {

absl::StatusOr<queue::QueueStats> QueueStatsReader::Collect(const nats::StreamState& stream,
                                                            const nats::ConsumerState& consumer) {
  MUSTER_RETURN_IF_ERROR(RemoveLeftovers(stream, consumer));
  queue::QueueStats stats;
  const auto stored = static_cast<int64_t>(stream.messages);
  stats.ready = std::min(static_cast<int64_t>(consumer.pending), stored);
  stats.in_flight = stored - stats.ready;
  if (stored > 0) {
    stats.oldest_age = std::max(clock_->Now() - stream.first_time, absl::ZeroDuration());
  }
  stats.waits = consumer.waiting;
  stats.total_in = static_cast<int64_t>(stream.last_sequence);
  stats.total_out = stats.total_in - stored;
  return stats;
}

// Removes leftovers only when seen twice, for a message may be acknowledged between the two
// answers, and only while the server waits for no acknowledgement: else a message below its ack
// floor may still be with a worker.
absl::Status QueueStatsReader::RemoveLeftovers(const nats::StreamState& stream,
                                               const nats::ConsumerState& consumer) {
  const bool left_over = consumer.ack_pending == 0 && stream.messages > 0 &&
                         stream.first_sequence <= consumer.settled_sequence;
  const uint64_t suspect = left_over ? stream.first_sequence : 0;
  if (suspect_.exchange(suspect) != suspect || !left_over) return absl::OkStatus();
  return jetstream_->Purge(StreamOf(id_), "", consumer.settled_sequence).status();
}

}  // namespace muster::queue::jetstream
