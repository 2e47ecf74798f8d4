// What a queue is called on the server.
//
//   queue "acme/work"
//
//   stream MUSTER_acme_work         its messages
//          consumer "workers"
//          subject  muster.queue.acme.work
//   stream MUSTER-ASIDE_acme_work   what does not queue
//          subject  muster.metadata.acme.work
//          subjects muster.poison.acme.work.<sequence>
//   stream MUSTER-ATTEMPTS          of all queues
//          subjects muster.attempts.acme.work.<slot> and ….p<page>
//
// Accounts and names hold only [a-z0-9-] (queue/limits.h), so nothing needs to be escaped.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "muster/queue/queue_store.h"

namespace muster::queue::jetstream {

inline constexpr char kConsumer[] = "workers";
inline constexpr char kAttemptsStream[] = "MUSTER-ATTEMPTS";

// Messages whose attempts are noted together, if they begin together: a page of neighbours.
inline constexpr uint64_t kPageMessages = 32;
inline uint64_t PageOf(uint64_t sequence) { return sequence / kPageMessages; }

std::string StreamOf(const queue::QueueId& queue);
std::string SubjectOf(const queue::QueueId& queue);
std::string AsideStreamOf(const queue::QueueId& queue);
std::string MetadataSubjectOf(const queue::QueueId& queue);
// `sequence`: a number, or "*".
std::string PoisonSubjectOf(const queue::QueueId& queue, absl::string_view sequence);
std::string AttemptSubjectOf(const queue::QueueId& queue, uint64_t sequence);
// Of those of a page of neighbours, that begin together.
std::string AttemptPageSubjectOf(const queue::QueueId& queue, uint64_t sequence);
std::string AttemptSubjectsOf(const queue::QueueId& queue);  // all of them

// The queue of a stream; nullopt for a stream that holds no queue's messages.
std::optional<queue::QueueId> QueueOfStream(absl::string_view stream);

// A message's id, a GUID: its sequence, and a part that tells queues apart.
std::string MessageIdOf(const queue::QueueId& queue, uint64_t sequence);
// The sequence in an id of this queue; nullopt for any other text.
std::optional<uint64_t> SequenceOf(const queue::QueueId& queue, absl::string_view message_id);

}  // namespace muster::queue::jetstream
