// SPDX-License-Identifier: Apache-2.0

// AttemptLog: how many handler starts each message was charged, and whether its last holder died at
// work. The delivery count of the server is not the same: a message that is fetched and given back
// was delivered, but no handler has started.
//
// Each record lies in a slot of its queue, in a stream in the memory of the server: every handler
// start writes one, and only the next receiver of the message reads it, which is rare. Records lost
// with the server make the count too low: an attempt goes uncharged.
//
// First attempts that begin together are noted together, one line each, in the slot of their page,
// and charge nothing: they only mark the suspects if the holder dies. A record of a single message
// is written later, and counts.
//
// The note of a handler start is published without waiting for an answer. Over a prompt connection
// the note has left this process before the call returns, so it survives a crash of the process,
// and the server keeps the order of the messages of one connection. Waiting for each answer would
// cost a small item more than its work.
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
  bool ended = false;     // the holder gave the message up in order; false: the attempt began
  bool suspect = false;   // with ended: an earlier holder died at work, no attempt began since
  int64_t stored_ns = 0;  // as in MessageKey; a record without it is of any message of the sequence
  // With ended: the message was given back with a delay that ends then, by the clock of its holder,
  // in a queue with leases of this duration; 0: at once. Only in records of single messages.
  int64_t due_ns = 0;
  int64_t lease_ns = 0;

  MessageKey key() const { return {sequence, stored_ns}; }
};

// Without the delay, which is in a header of its own: an older muster takes a record with more
// words for none.
std::string Encode(const AttemptRecord& record);
// nullopt: `text` is not a record.
std::optional<AttemptRecord> DecodeAttemptRecord(absl::string_view text);

inline constexpr char kDelayHeader[] = "Muster-Delay";
std::string EncodeDelay(const AttemptRecord& record);
// Leaves `record` as it is if `text` is no delay.
void DecodeDelay(absl::string_view text, AttemptRecord* record);

// Thread-safe.
class AttemptLog {
 public:
  // `jetstream` is not owned.
  AttemptLog(nats::JetStream* jetstream, const Settings& settings)
      : jetstream_(jetstream), settings_(settings) {}

  // Makes the stream if it does not exist.
  absl::Status Open();
  // OK: the stream has the record or, for an attempt that begins, the record has left on a prompt
  // connection. Now and then Write waits for the answer to one of these as well, to find out
  // whether the server lost the stream with its memory; then it makes the stream again.
  absl::Status Write(const queue::QueueId& queue, const AttemptRecord& record);
  // Like Write, for first attempts that begin together. On error some may be noted.
  absl::Status WriteTogether(const queue::QueueId& queue, absl::Span<const AttemptRecord> records);
  // Returns one result per message: its record, if there is one. Records of a message that had the
  // sequence in an earlier life of the stream are none.
  absl::StatusOr<std::vector<std::optional<AttemptRecord>>> Find(
      const queue::QueueId& queue, absl::Span<const MessageKey> messages);
  absl::Status Forget(const queue::QueueId& queue);

 private:
  using Notes = std::vector<AttemptRecord>;

  absl::Status Tell(const nats::Outgoing& message, size_t records);
  absl::Status Ask(const nats::Outgoing& message);
  // Returns all records in the page of `sequence`, oldest first.
  absl::StatusOr<Notes> ReadPage(const queue::QueueId& queue, uint64_t sequence);

  nats::JetStream* const jetstream_;  // not owned
  const Settings settings_;
  std::atomic<uint64_t> told_{0};
};

}  // namespace muster::queue::jetstream
