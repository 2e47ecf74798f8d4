// AttemptLog: how many handler starts a message was charged, and whether its last holder died at
// work. The server counts deliveries, which is not the same: what is fetched and given back is
// delivered, and no handler has started.
//
// A record lies in a slot of its queue, in a stream in the server's memory: it is written with
// every handler start and is of use only to whoever receives the message next, which is seldom.
// Notes that are lost with the server cost the honesty of a count: an attempt goes uncharged.
//
// First attempts that begin together are noted together, a line for each, in the slot of their
// page, and charge nothing: they say who is a suspect if the holder dies. What is said of a message
// alone comes later than that, and counts.
//
// That a handler starts is told, not asked: over a prompt connection the record is on its way
// whatever becomes of this process, and the server keeps the order of what one connection says. To
// wait for an answer to each would cost a small item more than its work.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "muster/nats/jetstream.h"
#include "muster/queue/jetstream/stream_layout.h"
#include "muster/queue/queue_store.h"

namespace muster::queue::jetstream {

struct AttemptRecord {
  uint64_t sequence = 0;  // of the message
  int deliveries = 0;     // when it was written
  int attempts = 0;       // charged so far
  bool ended = false;     // the holder let go in order; otherwise it began
  bool suspect = false;   // ended: an earlier holder died at work, and nobody has begun since
};

std::string Encode(const AttemptRecord& record);
// nullopt: no such text.
std::optional<AttemptRecord> DecodeAttemptRecord(absl::string_view text);

// Thread-safe.
class AttemptLog {
 public:
  // `jetstream` is not owned.
  AttemptLog(nats::JetStream* jetstream, const Settings& settings)
      : jetstream_(jetstream), settings_(settings) {}

  // Makes the stream.
  absl::Status Open();
  // OK: the stream has it, or, of an attempt that begins, it has left on a prompt connection. Now
  // and then one of those is awaited as well: a stream that the server has lost with its memory is
  // made again.
  absl::Status Write(const queue::QueueId& queue, const AttemptRecord& record);
  // The same of first attempts that begin together. On error some may be noted.
  absl::Status WriteTogether(const queue::QueueId& queue, absl::Span<const AttemptRecord> records);
  // One answer for each sequence: its record, if there is one.
  absl::StatusOr<std::vector<std::optional<AttemptRecord>>> Find(
      const queue::QueueId& queue, absl::Span<const uint64_t> sequences);
  absl::Status Forget(const queue::QueueId& queue);

 private:
  using Notes = std::vector<AttemptRecord>;

  absl::Status Tell(const nats::Outgoing& message, size_t records);
  absl::Status Ask(const nats::Outgoing& message);
  absl::StatusOr<std::optional<AttemptRecord>> FindAlone(const queue::QueueId& queue,
                                                         uint64_t sequence);
  // All that is noted together with `sequence`, the oldest first.
  absl::StatusOr<Notes> ReadPage(const queue::QueueId& queue, uint64_t sequence);

  nats::JetStream* const jetstream_;  // not owned
  const Settings settings_;
  std::atomic<uint64_t> told_{0};
};

}  // namespace muster::queue::jetstream
