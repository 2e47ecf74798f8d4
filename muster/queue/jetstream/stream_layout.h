// SPDX-License-Identifier: Apache-2.0

// The names of a queue on the server; the settings of its streams and consumer; its receipts.
//
//   queue "acme/work"
//
//   stream MUSTER_acme_work         its messages
//          consumer "workers"
//          subject  muster.queue.acme.work
//   stream MUSTER-ASIDE_acme_work   metadata and poison messages
//          subject  muster.metadata.acme.work
//          subjects muster.poison.acme.work.<sequence>-<time>
//   stream MUSTER-ATTEMPTS          of all queues
//          subjects muster.attempts.acme.work.<slot> and ….p<page>
//   stream MUSTER-HELD              of all holders (held_log.h)
//          subjects muster.held.<holder>.acme.work.<slot> and muster.held.<holder>.given-back
//
// <time> is when the stream took the message, in nanoseconds, hexadecimal: the aside stream and the
// attempts may outlive the stream of the messages, and a stream that is made anew gives the
// sequences again. An older muster wrote <sequence> alone.
//
// Accounts and names contain only [a-z0-9-] (queue/limits.h), so they need no escaping.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/nats/jetstream.h"
#include "muster/queue/limits.h"
#include "muster/queue/queue_store.h"
#include "nlohmann/json_fwd.hpp"

namespace muster::queue::jetstream {

inline constexpr char kConsumer[] = "workers";
inline constexpr char kAttemptsStream[] = "MUSTER-ATTEMPTS";
inline constexpr char kHeldStream[] = "MUSTER-HELD";

// Size of a page of neighbouring messages: their attempts are noted together if they begin
// together.
inline constexpr uint64_t kPageMessages = 32;
inline uint64_t PageOf(uint64_t sequence) { return sequence / kPageMessages; }

std::string StreamOf(const queue::QueueId& queue);
std::string SubjectOf(const queue::QueueId& queue);
std::string AsideStreamOf(const queue::QueueId& queue);
std::string MetadataSubjectOf(const queue::QueueId& queue);

// A message over all lives of its stream: by the sequence first.
struct MessageKey {
  uint64_t sequence = 0;
  int64_t stored_ns = 0;  // when the stream took it; 0: an older muster did not note it

  friend auto operator<=>(const MessageKey&, const MessageKey&) = default;
};
MessageKey KeyOf(uint64_t sequence, absl::Time stored);

std::string PoisonSubjectOf(const queue::QueueId& queue, const MessageKey& key);
std::string PoisonSubjectsOf(const queue::QueueId& queue);  // all of them
// nullopt: `subject` is none of a poison message.
std::optional<MessageKey> PoisonKeyOf(absl::string_view subject);
std::string AttemptSubjectOf(const queue::QueueId& queue, uint64_t sequence);
// The subject for a page of neighbouring messages with attempts that begin together.
std::string AttemptPageSubjectOf(const queue::QueueId& queue, uint64_t sequence);
std::string AttemptSubjectsOf(const queue::QueueId& queue);  // all of them

// The subjects of a process that holds messages. The name of the holder is written as a token.
std::string AliveSubjectOf(absl::string_view holder);
std::string HeldSubjectOf(absl::string_view holder, const queue::QueueId& queue, int slot);
std::string HeldNotesOf(absl::string_view holder);          // all of these
std::string HeldNotesOfQueue(const queue::QueueId& queue);  // of all holders
std::string GivenBackSubjectOf(absl::string_view holder);   // the mark that others set
std::string HeldSubjectsOf(absl::string_view holder);       // notes and mark
// nullopt: `subject` is none of a note.
std::optional<queue::QueueId> QueueOfHeld(absl::string_view subject);

// Names one life of a stream: of two streams made one after the other under one name, each has its
// own. The server keeps it over restarts.
std::string IncarnationOf(const nats::StreamState& stream);

// Returns the queue of a stream; nullopt if the stream holds no messages of a queue.
std::optional<queue::QueueId> QueueOfStream(absl::string_view stream);

// Returns the id of a message, a GUID: its sequence, and a part that differs between queues.
std::string MessageIdOf(const queue::QueueId& queue, uint64_t sequence);
// Returns the sequence in an id of this queue; nullopt for any other text.
std::optional<uint64_t> SequenceOf(const queue::QueueId& queue, absl::string_view message_id);

// The settings of streams and consumers, as the JSON of the server API.

struct Settings {
  int replicas = 1;  // 1, 3 or 5
  // How long a lease lasts, unless the metadata of the queue says otherwise (kVisibilityName). A
  // consumer has one duration for all its messages.
  absl::Duration lease = absl::Seconds(30);
  absl::Duration dedup_window = queue::kDedupWindow;
  // The server knows atomic batches (nats::kAtomicApiLevel), and they are faster than single
  // messages, because it syncs its writes.
  bool atomic_puts = false;
};

nlohmann::json StreamSettings(const queue::QueueId& queue, const Settings& settings);
nlohmann::json ConsumerSettings(absl::Duration lease);
nlohmann::json AsideStreamSettings(const queue::QueueId& queue, const Settings& settings);
nlohmann::json AttemptsStreamSettings(const Settings& settings);
nlohmann::json HeldStreamSettings(const Settings& settings);

// A receipt of this engine holds the subject on which the server expects the acknowledgement.

// One delivery of a message, parsed from the subject that acknowledges it:
//
//   $JS.ACK.<stream>.<consumer>.<deliveries>.<stream sequence>.<consumer sequence>.<time>.<pending>
//
// or, with a domain and the hash of an account before the stream, and further tokens at the end.
struct Delivery {
  std::string ack_subject;
  uint64_t sequence = 0;  // of the message in its stream
  int deliveries = 0;     // this one included
  absl::Time stored;      // when the stream took the message

  MessageKey key() const { return KeyOf(sequence, stored); }
};

// InvalidArgument: `subject` has another form.
absl::StatusOr<Delivery> ParseAckSubject(absl::string_view subject);
// A subject that acknowledges a message of the queue, of any delivery; `delivery`: the
// number of any delivery that is not yet settled, over all messages.
std::string AckSubjectOf(const queue::QueueId& queue, uint64_t sequence, uint64_t delivery);
// The stream in such a subject; empty: it has another form.
absl::string_view StreamOfAck(absl::string_view subject);

// What acknowledges a delivery so that the server delivers the message again at once.
inline constexpr char kAtOnceAgain[] = "-NAK";
// Likewise, after `delay`. The server keeps that as what is left of a lease: when the duration of
// leases changes (ack_wait), the delay changes by as much
// (findings/nats_delay_moves_with_ack_wait.sh).
std::string AgainAfter(absl::Duration delay);
// Sent before kAtOnceAgain, makes it hold although the server is restarted or its leader moves: the
// server stores delays, and nothing of kAtOnceAgain
// (findings/nats_give_back_forgotten_on_restart.sh). It has the server look through all that is in
// flight: 8 ms for 65,000 messages. Two seconds, so that kAtOnceAgain is there before the message
// is due: it would take the message from its next holder
// (findings/nats_late_nak_ends_the_lease_of_another.sh).
inline constexpr char kAgainSoon[] = "-NAK {\"delay\": 2000000000}";

// The receipt of a delivered message, or (Put) of a message stored under `sequence`. When the
// server took that one it does not say, so the body tells it from another one of that sequence.
queue::Receipt ReceiptOf(const queue::QueueId& queue, const Delivery& delivery);
queue::Receipt ReceiptOfPut(const queue::QueueId& queue, uint64_t sequence, absl::string_view body);
std::string BodySumOf(absl::string_view body);

struct ReadReceipt {
  bool of_put = false;
  Delivery delivery;     // of a put: only its sequence
  std::string body_sum;  // of a put
};

// InvalidArgument: not a receipt of this queue.
absl::StatusOr<ReadReceipt> ParseReceipt(const queue::QueueId& queue, absl::string_view receipt);

}  // namespace muster::queue::jetstream
