// SPDX-License-Identifier: Apache-2.0

// StreamQueue: the messages of one existing queue, on its stream and consumer.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/nats/jetstream.h"
#include "muster/queue/jetstream/attempt_log.h"
#include "muster/queue/jetstream/dead_letter_store.h"
#include "muster/queue/jetstream/delay_table.h"
#include "muster/queue/jetstream/held_log.h"
#include "muster/queue/jetstream/jetstream_queue_store.h"
#include "muster/queue/jetstream/lease_table.h"
#include "muster/queue/jetstream/queue_stats_reader.h"
#include "muster/queue/jetstream/stream_layout.h"
#include "muster/queue/jetstream/waiting_pulls.h"
#include "muster/queue/queue_store.h"

namespace muster::queue::jetstream {

// The two connections to the server, and what waits there; none is owned.
struct JetStreamClients {
  nats::JetStream* bulk;    // for many messages at a time
  nats::JetStream* prompt;  // for calls that a worker waits for
  WaitingPulls* waits;
};

// What is noted about messages beside their stream; not owned.
struct Notes {
  AttemptLog* attempts;
  HeldLog* held;
};

// The verbs follow queue_store.h; their arguments are already validated. Thread-safe.
class StreamQueue {
 public:
  // No pointer is owned; all must outlive the queue. `lease`: the lease duration of the consumer.
  StreamQueue(queue::QueueId id, JetStreamClients clients, Notes notes, DeadLetterStore* poison,
              const Options* options, absl::Duration lease)
      : id_(std::move(id)),
        jetstream_(clients.bulk),
        prompt_(clients.prompt),
        waits_(clients.waits),
        attempt_log_(notes.attempts),
        held_log_(notes.held),
        poison_(poison),
        options_(options),
        stats_reader_(id_, jetstream_, options_->clock),
        lease_ns_(absl::ToInt64Nanoseconds(lease)),
        held_(id_, held_log_) {}

  absl::StatusOr<std::vector<queue::PutResult>> Put(absl::Span<const queue::NewMessage> messages);
  absl::StatusOr<std::vector<queue::Message>> Receive(int max_messages);
  // Passes what came by a waiting pull to `take`. False: it is to be given back at once.
  bool Arrive(const Arrival& arrival, const queue::QueueStore::TakeMessage& take);
  absl::StatusOr<std::vector<queue::Message>> Peek(int max_messages);
  absl::StatusOr<std::vector<absl::StatusOr<int>>> BeginAttempt(
      absl::Span<const queue::Receipt> receipts);
  absl::StatusOr<std::vector<absl::StatusOr<queue::UpdateResult>>> Update(
      absl::Span<const queue::UpdateRequest> requests);
  absl::StatusOr<std::vector<absl::Status>> Delete(absl::Span<const queue::Receipt> receipts);
  absl::Status Clear();
  absl::StatusOr<std::vector<absl::Status>> DeadLetter(
      absl::Span<const queue::DeadLetterRequest> requests);
  absl::StatusOr<queue::QueueStats> Stats();
  absl::StatusOr<queue::QueueExtent> Extent();

  // Without what a server has back in its stream after its death although it is settled, as Extent.
  absl::StatusOr<std::vector<queue::StoredMessage>> Scan(uint64_t from, int max);
  absl::StatusOr<uint64_t> Reclaim();

  // Gives back what a dead process held, and returns how many messages that were at most. It leaves
  // those alone that are settled, were given back in order, or are with another holder by now; and
  // all if the holder was silent for so long that the first of its leases may have lapsed.
  absl::StatusOr<int64_t> GiveBackOf(absl::Span<const Delivery> held, absl::Duration silence);

  // Notes the lease duration that the consumer has now. It applies to held leases, too. When it has
  // grown, asks the server to keep the delays as they were of what this process has given back.
  // Call it without a lock.
  void FollowLease(absl::Duration lease);

  // Whether this process holds nothing of the queue, and has nothing to remember of it: another
  // object for the queue does as well.
  bool IsForgettable();

 private:
  // A message to the server about one delivery, and the place of its request among those of the
  // caller.
  struct AckRequest {
    size_t place = 0;
    std::string ack_subject;
    std::string text;
  };

  // Sends all of `acks` and stores the answer of the server to each at its place in `results`.
  absl::Status SendAcks(const std::vector<AckRequest>& acks, std::vector<absl::Status>* results);

  // Fetches up to `max_messages` deliveries of messages that are there; waits for none, or for a
  // moment (stalled_).
  absl::StatusOr<std::vector<nats::Incoming>> Pull(int max_messages);
  // Whether the server is so old that it may forget a message that is due as a pull ends
  // (waiting_pulls.h).
  bool MayForget();
  // As Pull from a consumer that is stalled, one by one, without a pull whose end matters. And
  // looks whether the consumer is stalled.
  absl::StatusOr<std::vector<nats::Incoming>> AskForDue(int max_messages);
  // As Pull, with an answer also where the server gives none, and with a second look.
  absl::StatusOr<std::vector<nats::Incoming>> PullWhatIsThere(int max_messages);
  queue::Message MessageOf(const Delivery& delivery, std::string body, absl::Time lapses) const;
  // When on the monotonic clock a message may have been delivered to a pull that was sent at
  // `asked`.
  absl::Duration EarliestDelivery(const Delivery& delivery, absl::Duration asked) const;
  // A message that came before the delay was over with which it was given back, as `record` says;
  // its place among those that came.
  struct Early {
    size_t place = 0;
    AttemptRecord record = {};
  };

  // Fills in the attempts of messages that were delivered before, from their records in the attempt
  // log, and puts a lease like `as` of each into the table. Returns those that seem to be early.
  absl::StatusOr<std::vector<Early>> Recall(absl::Span<queue::Message> messages,
                                            absl::Span<const Delivery> deliveries, const Lease& as);
  // Gives back those of `early`, with what is left of their delays, that are early because leases
  // have become shorter, and takes them out of `messages`.
  void PutOff(std::vector<Early> early, absl::Span<const Delivery> deliveries,
              std::vector<queue::Message>* messages);

  // Charges an attempt in this process. The caller must write the record.
  absl::StatusOr<AttemptRecord> Charge(const queue::Receipt& receipt);
  absl::StatusOr<AckRequest> AckRequestFor(const queue::UpdateRequest& request, size_t place);
  absl::Status EndAttempt(const Delivery& delivery, const queue::UpdateRequest& request);
  // Stores all of `window` or none where atomic batches pay, or else its messages one by one.
  // Returns one result per message.
  absl::StatusOr<std::vector<absl::StatusOr<nats::PubAck>>> PutTogether(
      absl::Span<const nats::Outgoing> window);
  bool TakesAtomicBatches();
  // Returns the lease of a delivery. If another process received it, the lease is as complete as
  // its record in the attempt log.
  absl::StatusOr<Lease> LeaseOf(const Delivery& delivery);
  // Whether this process knows that another holder may have the message by now. The server would
  // take the acknowledgement of a late holder for that of the new one.
  bool HasLapsed(const Delivery& delivery) const;
  // What lies at the sequence of a delivery: its message, none, or another one, because the queue
  // was deleted and made again since.
  enum class Place { kSame, kGone, kOther };
  // Asks the server, unless this process holds the message.
  absl::StatusOr<Place> PlaceOf(const Delivery& delivery);
  absl::Status DeletePut(const ReadReceipt& put);
  // Whether others gave the message back, when this process seemed dead.
  bool WasGivenBack(const Lease& lease) const { return lease.term != held_log_->term(); }
  absl::Status DeadLetterOne(const queue::DeadLetterRequest& request, AckRequest* ack);
  // Reads the state of the consumer, follows its lease duration, and notes whether it is stalled.
  absl::StatusOr<nats::ConsumerState> RefreshConsumer();
  // Logs it when the consumer was paused, or is no longer. `left`: of the pause.
  void TellOfPause(absl::Duration left);
  absl::Duration Now() const { return options_->clock->Monotonic(); }
  absl::Duration lease() const { return absl::Nanoseconds(lease_ns_.load()); }

  const queue::QueueId id_;
  nats::JetStream* const jetstream_;  // not owned
  nats::JetStream* const prompt_;     // not owned
  WaitingPulls* const waits_;         // not owned
  AttemptLog* const attempt_log_;     // not owned
  HeldLog* const held_log_;           // not owned
  DeadLetterStore* const poison_;     // not owned
  const Options* const options_;      // not owned
  QueueStatsReader stats_reader_;
  std::atomic<int64_t> lease_ns_;
  // What the stream said when it was last asked, and over which connection (reconnects()).
  std::atomic<bool> takes_atomic_batches_ = false;
  std::atomic<int64_t> asked_over_ = -1;
  // The consumer was last seen with nearly its max_ack_pending of deliveries: the server may answer
  // no pull that is not to wait.
  std::atomic<bool> stalled_ = false;
  std::atomic<bool> may_forget_ = true;
  std::atomic<int64_t> level_asked_over_ = -1;  // as asked_over_
  std::atomic<bool> paused_ = false;
  // Delayed messages below this sequence were made ready on purpose (Reclaim).
  std::atomic<uint64_t> reclaimed_below_ = 0;
  LeaseTable leases_;
  DelayTable delays_;
  HeldMessages held_;
};

}  // namespace muster::queue::jetstream
