// LeaseTable: the leases of one queue that this process holds. The server knows when a lease
// lapses, but does not say so; and it takes an acknowledgement from whoever sends it.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/nats/jetstream.h"
#include "muster/queue/jetstream/attempt_log.h"
#include "muster/queue/jetstream/dead_letter_store.h"
#include "muster/queue/jetstream/jetstream_queue_store.h"
#include "muster/queue/jetstream/stream_layout.h"
#include "muster/queue/queue_store.h"

namespace muster::queue::jetstream {

struct Lease {
  int deliveries = 0;   // of its message, this one included
  absl::Duration ends;  // on the monotonic clock
  int attempts = 0;     // charged so far
  bool interrupted = false;
  bool began = false;  // an attempt was charged under this lease
};

// By the sequence of the message. Thread-safe.
class LeaseTable {
 public:
  // Replaces what was known of the message.
  void Put(uint64_t sequence, const Lease& lease);
  // nullopt: this process does not hold that delivery.
  std::optional<Lease> Find(uint64_t sequence, int deliveries) const;
  void End(uint64_t sequence, int deliveries);
  void EndAll();
  // All of them end so much later; negative: earlier.
  void Shift(absl::Duration by);
  // Forgets those that lapsed before `time` and that nobody settled.
  void Sweep(absl::Duration time);
  // Those that last beyond `time`.
  int64_t CountAlive(absl::Duration time) const;

 private:
  mutable base::Mutex mu_;
  absl::flat_hash_map<uint64_t, Lease> leases_ ABSL_GUARDED_BY(mu_);
};

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

// StreamQueue: the messages of one queue that is there, on its stream and consumer.

// To the server; neither is owned.
struct JetStreamClients {
  nats::JetStream* bulk;    // for many messages at a time
  nats::JetStream* prompt;  // for what a worker waits for
};

// The verbs of queue_store.h, whose arguments were validated. Thread-safe.
class StreamQueue {
 public:
  // Nothing is owned but copies; all outlives the queue. `lease`: how long the consumer has its
  // leases last.
  StreamQueue(queue::QueueId id, JetStreamClients clients, AttemptLog* notes,
              DeadLetterStore* poison, const Options* options, absl::Duration lease)
      : id_(std::move(id)),
        jetstream_(clients.bulk),
        prompt_(clients.prompt),
        attempt_log_(notes),
        poison_(poison),
        options_(options),
        stats_reader_(id_, jetstream_, options_->clock),
        lease_ns_(absl::ToInt64Nanoseconds(lease)) {}

  absl::StatusOr<std::vector<queue::PutResult>> Put(absl::Span<const queue::NewMessage> messages);
  absl::StatusOr<std::vector<queue::Message>> Receive(int max_messages);
  absl::StatusOr<std::vector<queue::Message>> Peek(int max_messages);
  std::vector<absl::StatusOr<int>> BeginAttempt(absl::Span<const queue::Receipt> receipts);
  absl::StatusOr<std::vector<absl::StatusOr<queue::UpdateResult>>> Update(
      absl::Span<const queue::UpdateRequest> requests);
  absl::StatusOr<std::vector<absl::Status>> Delete(absl::Span<const queue::Receipt> receipts);
  absl::Status Clear();
  absl::StatusOr<std::vector<absl::Status>> DeadLetter(
      absl::Span<const queue::DeadLetterRequest> requests);
  absl::StatusOr<queue::QueueStats> Stats();

  // The consumer has leases last so long now, those that are held, too.
  void FollowLease(absl::Duration lease);

 private:
  // What is said to the server about a delivery, and the place of its request among the caller's.
  struct AckRequest {
    size_t place = 0;
    std::string ack_subject;
    std::string text;
  };

  // Says all of `acks` and puts what the server answers at their places in `results`.
  absl::Status SendAcks(const std::vector<AckRequest>& acks, std::vector<absl::Status>* results);

  // Deliveries as the server sent them, up to `max_messages`; when there is none it waits for
  // `patience`.
  absl::StatusOr<std::vector<nats::Incoming>> Pull(int max_messages, absl::Duration patience);
  // Of messages that were delivered before: what their notes say.
  absl::Status Recall(absl::Span<queue::Message> messages, absl::Span<const Delivery> deliveries,
                      absl::Duration ends);

  // In this process; its record is still to be written.
  absl::StatusOr<AttemptRecord> Charge(const queue::Receipt& receipt);
  absl::StatusOr<AckRequest> AckRequestFor(const queue::UpdateRequest& request, size_t place);
  absl::Status EndAttempt(const Delivery& delivery, bool refund);
  // The lease under which a message was delivered; of another process's delivery, as far as its
  // record tells.
  absl::StatusOr<Lease> LeaseOf(const Delivery& delivery);
  // Whether this process knows that somebody else may have the message by now. The server would
  // take what a late holder says for the ack of the new one.
  bool HasLapsed(const Delivery& delivery) const;
  absl::Status DeadLetterOne(const queue::DeadLetterRequest& request, AckRequest* ack);
  // The state of the consumer, whose lease is followed.
  absl::StatusOr<nats::ConsumerState> RefreshConsumer();
  absl::Duration Now() const { return options_->clock->Monotonic(); }
  absl::Duration lease() const { return absl::Nanoseconds(lease_ns_.load()); }

  const queue::QueueId id_;
  nats::JetStream* const jetstream_;  // not owned
  nats::JetStream* const prompt_;     // not owned
  AttemptLog* const attempt_log_;     // not owned
  DeadLetterStore* const poison_;     // not owned
  const Options* const options_;      // not owned
  QueueStatsReader stats_reader_;
  std::atomic<int64_t> lease_ns_;
  LeaseTable leases_;
};

}  // namespace muster::queue::jetstream
