// SPDX-License-Identifier: Apache-2.0
#include "muster/queue/jetstream/stream_queue.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "muster/base/check.h"
#include "muster/base/clock.h"
#include "muster/base/log.h"
#include "muster/base/status.h"
#include "muster/nats/status.h"

namespace muster::queue::jetstream {

namespace {

// Between the first two tries to say something of a delivery; twice as long between the next two.
constexpr absl::Duration kFirstSayAgain = absl::Milliseconds(50);
// All waits together take less than twice this, and less than kAgainSoon has a message wait.
constexpr absl::Duration kLongestSayAgain = absl::Milliseconds(800);

constexpr char kRenewal[] = "+WPI";

absl::Status NotHeld(const queue::QueueId& queue) {
  return absl::FailedPreconditionError(
      absl::StrCat("queue '", queue.ToString(), "': the lease of the receipt has ended"));
}

absl::Status OnlyDelete(const queue::QueueId& queue) {
  return absl::FailedPreconditionError(absl::StrCat(
      "queue '", queue.ToString(), "': the receipt of a put only deletes, with this engine"));
}

absl::Status GoneWithItsQueue(const queue::QueueId& queue) {
  return absl::NotFoundError(
      absl::StrCat("queue '", queue.ToString(), "': the receipt is of a queue that was deleted"));
}

absl::Status Gone(const queue::QueueId& queue) {
  return absl::NotFoundError(
      absl::StrCat("queue '", queue.ToString(), "': the message of the receipt is gone"));
}

// Whether the holder gives the message back.
bool LetsGo(const queue::UpdateRequest& request) {
  return request.attempt_ended || request.visibility == absl::ZeroDuration();
}

}  // namespace

absl::StatusOr<std::vector<absl::StatusOr<int>>> StreamQueue::BeginAttempt(
    absl::Span<const queue::Receipt> receipts) {
  MUSTER_RETURN_IF_ERROR(held_log_->RefreshTerm().status());
  std::vector<absl::StatusOr<int>> results;
  results.reserve(receipts.size());
  std::vector<AttemptRecord> together;
  std::vector<size_t> places;  // of each of `together` in `results`
  for (const queue::Receipt& receipt : receipts) {
    const absl::StatusOr<AttemptRecord> charged = Charge(receipt);
    results.push_back(charged.ok() ? absl::StatusOr<int>(charged->attempts) : charged.status());
    if (!charged.ok()) continue;
    // Only for first deliveries: an earlier delivery may have left a record of its own, and Find
    // would prefer that record.
    if (receipts.size() > 1 && charged->deliveries == 1) {
      // No message is charged for the fault of a neighbour: if the holder dies, each is only a
      // suspect.
      together.push_back(*charged);
      together.back().attempts = 0;
      places.push_back(results.size() - 1);
    } else if (absl::Status noted = attempt_log_->Write(id_, *charged); !noted.ok()) {
      results.back() = noted;
    }
  }
  if (absl::Status noted = attempt_log_->WriteTogether(id_, together); !noted.ok()) {
    for (const size_t place : places) results[place] = noted;
  }
  return results;
}

absl::StatusOr<AttemptRecord> StreamQueue::Charge(const queue::Receipt& receipt) {
  MUSTER_ASSIGN_OR_RETURN(const ReadReceipt read, ParseReceipt(id_, receipt));
  const Delivery& delivery = read.delivery;
  std::optional<Lease> lease = leases_.Find(delivery.sequence, delivery.deliveries);
  if (read.of_put || !lease.has_value() || HasLapsed(delivery)) return NotHeld(id_);
  ++lease->attempts;
  lease->began = true;
  leases_.Put(delivery.sequence, *lease);
  return AttemptRecord{.sequence = delivery.sequence,
                       .deliveries = delivery.deliveries,
                       .attempts = lease->attempts,
                       .stored_ns = delivery.key().stored_ns};
}

// While another server begins to lead the consumer, nobody listens to what is said of its
// deliveries. A message that was not given back or settled would have to wait for the end of its
// lease, so that is said again, all the words for a message or none: what was heard holds. A late
// answer is another matter, for what it would answer may have been done. Renewals come again
// anyway.
absl::Status StreamQueue::SendAcks(const std::vector<AckRequest>& acks,
                                   std::vector<absl::Status>* results) {
  std::vector<const AckRequest*> unsaid;
  for (const AckRequest& ack : acks) unsaid.push_back(&ack);
  const absl::Duration longest_wait = std::min(kLongestSayAgain, lease() / 10);
  for (absl::Duration wait = kFirstSayAgain;; wait *= 2) {
    std::vector<nats::Outgoing> outgoing;
    for (const AckRequest* ack : unsaid) {
      outgoing.push_back({.subject = ack->ack_subject, .data = ack->text});
    }
    MUSTER_ASSIGN_OR_RETURN(const auto answers,
                            jetstream_->connection()->RequestAll(outgoing, options_->timeout));
    MUSTER_CHECK(answers.size() == unsaid.size(), "answers ", answers.size(), ", acks ",
                 unsaid.size());
    absl::flat_hash_set<size_t> heard;  // places
    for (size_t i = 0; i < unsaid.size(); ++i) {
      const absl::Status& status = answers[i].status();
      const bool is_unheard = nats::IsNobodyListens(status);
      if (!is_unheard || !heard.contains(unsaid[i]->place)) (*results)[unsaid[i]->place] = status;
      if (!is_unheard) heard.insert(unsaid[i]->place);
    }
    std::erase_if(unsaid, [&](const AckRequest* ack) {
      return heard.contains(ack->place) || ack->text == kRenewal;
    });
    if (unsaid.empty() || wait > longest_wait) return absl::OkStatus();
    base::SleepUnlessStopped(base::RealClock(), wait, {});
  }
}

absl::StatusOr<Lease> StreamQueue::LeaseOf(const Delivery& delivery) {
  const std::optional<Lease> known = leases_.Find(delivery.sequence, delivery.deliveries);
  if (known.has_value()) return *known;
  Lease lease{.deliveries = delivery.deliveries, .ends = Now()};
  MUSTER_ASSIGN_OR_RETURN(const auto records, attempt_log_->Find(id_, {delivery.key()}));
  if (!records.front().has_value()) return lease;
  const AttemptRecord& record = *records.front();
  lease.attempts = record.attempts;
  lease.began = !record.ended && record.deliveries == delivery.deliveries;
  lease.interrupted = record.ended ? record.suspect : !lease.began;
  return lease;
}

bool StreamQueue::HasLapsed(const Delivery& delivery) const {
  const std::optional<Lease> lease = leases_.Find(delivery.sequence, delivery.deliveries);
  return lease.has_value() && (lease->ends <= Now() || WasGivenBack(*lease));
}

absl::StatusOr<StreamQueue::Place> StreamQueue::PlaceOf(const Delivery& delivery) {
  const std::optional<Lease> lease = leases_.Find(delivery.sequence, delivery.deliveries);
  if (lease.has_value() && lease->ends > Now()) return Place::kSame;
  const auto stored = jetstream_->GetMessage(StreamOf(id_), delivery.sequence);
  if (absl::IsNotFound(stored.status())) return Place::kGone;
  MUSTER_RETURN_IF_ERROR(stored.status());
  return KeyOf(stored->sequence, stored->time) == delivery.key() ? Place::kSame : Place::kOther;
}

absl::Status StreamQueue::DeletePut(const ReadReceipt& put) {
  MUSTER_ASSIGN_OR_RETURN(const nats::StoredMessage stored,
                          jetstream_->GetMessage(StreamOf(id_), put.delivery.sequence));
  if (BodySumOf(stored.data) != put.body_sum) return GoneWithItsQueue(id_);
  return jetstream_->DeleteMessage(StreamOf(id_), put.delivery.sequence);
}

absl::Status StreamQueue::EndAttempt(const Delivery& delivery,
                                     const queue::UpdateRequest& request) {
  MUSTER_ASSIGN_OR_RETURN(const Lease lease, LeaseOf(delivery));
  AttemptRecord record{.sequence = delivery.sequence,
                       .deliveries = delivery.deliveries,
                       .ended = true,
                       .stored_ns = delivery.key().stored_ns};
  const bool refund = request.refund_attempt && lease.began;
  record.attempts = std::max(0, lease.attempts - (refund ? 1 : 0));
  record.suspect = lease.interrupted && !lease.began;
  // A missing record means no attempts, so there is nothing to write.
  if (!lease.began && record.attempts == 0 && !record.suspect) return absl::OkStatus();
  if (request.visibility > absl::ZeroDuration()) {
    record.due_ns = absl::ToUnixNanos(options_->clock->Now() + request.visibility);
    record.lease_ns = lease_ns_;
  }
  return attempt_log_->Write(id_, record);
}

absl::StatusOr<StreamQueue::AckRequest> StreamQueue::AckRequestFor(
    const queue::UpdateRequest& request, size_t place) {
  MUSTER_CHECK(request.attempt_ended || !request.refund_attempt, "receipt ", request.receipt);
  MUSTER_ASSIGN_OR_RETURN(const ReadReceipt read, ParseReceipt(id_, request.receipt));
  if (read.of_put) return OnlyDelete(id_);
  if (HasLapsed(read.delivery)) return NotHeld(id_);
  MUSTER_ASSIGN_OR_RETURN(const Place place_of, PlaceOf(read.delivery));
  if (place_of == Place::kOther) return GoneWithItsQueue(id_);
  if (place_of == Place::kGone) return Gone(id_);
  if (request.body.has_value()) {
    return absl::FailedPreconditionError("JetStream cannot replace the body of a message");
  }
  if (request.attempt_ended) {
    MUSTER_RETURN_IF_ERROR(EndAttempt(read.delivery, request));
  }
  return AckRequest{place, read.delivery.ack_subject,
                    LetsGo(request) ? AgainAfter(request.visibility) : kRenewal};
}

absl::StatusOr<std::vector<absl::StatusOr<queue::UpdateResult>>> StreamQueue::Update(
    absl::Span<const queue::UpdateRequest> requests) {
  MUSTER_RETURN_IF_ERROR(held_log_->RefreshTerm().status());
  std::vector<absl::Status> said(requests.size());
  std::vector<AckRequest> acks;
  std::vector<Delivery> given_back;
  for (size_t i = 0; i < requests.size(); ++i) {
    absl::StatusOr<AckRequest> ack = AckRequestFor(requests[i], i);
    said[i] = ack.status();
    if (!ack.ok()) continue;
    if (ack->text == kAtOnceAgain) acks.push_back({i, ack->ack_subject, kAgainSoon});
    acks.push_back(*std::move(ack));
    if (LetsGo(requests[i])) given_back.push_back(ParseReceipt(id_, requests[i].receipt)->delivery);
  }
  held_.GivingBack(given_back);
  const absl::Duration asked = Now(), ends = asked + lease();
  const absl::Time now = options_->clock->Now();
  MUSTER_RETURN_IF_ERROR(SendAcks(acks, &said));
  std::vector<absl::StatusOr<queue::UpdateResult>> results;
  for (size_t i = 0; i < requests.size(); ++i) {
    if (!said[i].ok()) {
      results.push_back(said[i]);
      continue;
    }
    const Delivery delivery = ParseReceipt(id_, requests[i].receipt)->delivery;
    const bool lets_go = LetsGo(requests[i]);
    std::optional<Lease> held = leases_.Find(delivery.sequence, delivery.deliveries);
    if (lets_go) {
      const absl::Duration delay = requests[i].visibility;
      if (delay > absl::ZeroDuration() && held.has_value() && held->began) {
        delays_.Put(delivery, asked + delay, asked);
      }
      leases_.End(delivery.sequence, delivery.deliveries);
    } else if (held.has_value()) {
      held->ends = ends;
      leases_.Put(delivery.sequence, *held);
    }
    results.push_back(queue::UpdateResult{requests[i].receipt,
                                          now + (lets_go ? requests[i].visibility : lease())});
  }
  return results;
}

absl::StatusOr<std::vector<absl::Status>> StreamQueue::Delete(
    absl::Span<const queue::Receipt> receipts) {
  MUSTER_RETURN_IF_ERROR(held_log_->RefreshTerm().status());
  std::vector<absl::Status> results(receipts.size());
  std::vector<AckRequest> acks;
  std::vector<Delivery> deliveries;
  for (size_t i = 0; i < receipts.size(); ++i) {
    absl::StatusOr<ReadReceipt> read = ParseReceipt(id_, receipts[i]);
    results[i] = read.status();
    if (!read.ok()) continue;
    if (read->of_put) {
      results[i] = DeletePut(*read);
      continue;
    }
    const std::optional<Lease> lease =
        leases_.Find(read->delivery.sequence, read->delivery.deliveries);
    if (lease.has_value() && WasGivenBack(*lease)) {
      results[i] = NotHeld(id_);
      continue;
    }
    // What is gone is deleted once more: a process may repeat a delete whose answer was lost.
    const absl::StatusOr<Place> place = PlaceOf(read->delivery);
    results[i] = place.status();
    if (place.ok() && *place == Place::kOther) results[i] = GoneWithItsQueue(id_);
    if (!results[i].ok()) continue;
    acks.push_back({i, read->delivery.ack_subject, "+ACK"});
    deliveries.push_back(std::move(read->delivery));
  }
  MUSTER_RETURN_IF_ERROR(SendAcks(acks, &results));
  for (size_t i = 0; i < acks.size(); ++i) {
    if (!results[acks[i].place].ok()) continue;
    leases_.End(deliveries[i].sequence, deliveries[i].deliveries);
    held_.Settled(deliveries[i]);
  }
  return results;
}

absl::Status StreamQueue::Clear() {
  MUSTER_RETURN_IF_ERROR(jetstream_->Purge(StreamOf(id_)).status());
  leases_.EndAll();
  delays_.Clear();
  held_.Clear();
  return absl::OkStatus();
}

absl::Status StreamQueue::DeadLetterOne(const queue::DeadLetterRequest& request, AckRequest* ack) {
  MUSTER_ASSIGN_OR_RETURN(const ReadReceipt read, ParseReceipt(id_, request.receipt));
  if (read.of_put) return OnlyDelete(id_);
  if (HasLapsed(read.delivery)) return NotHeld(id_);
  MUSTER_ASSIGN_OR_RETURN(const nats::StoredMessage stored,
                          jetstream_->GetMessage(StreamOf(id_), read.delivery.sequence));
  // The stream was lost since, and has given the sequence to another message.
  if (KeyOf(stored.sequence, stored.time) != read.delivery.key()) return NotHeld(id_);
  queue::Cause cause = request.cause;
  if (cause.time == absl::Time()) cause.time = options_->clock->Now();
  MUSTER_RETURN_IF_ERROR(poison_->Add(id_, stored, cause));
  ack->ack_subject = read.delivery.ack_subject;
  ack->text = "+TERM";
  leases_.End(read.delivery.sequence, read.delivery.deliveries);
  held_.Settled(read.delivery);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<absl::Status>> StreamQueue::DeadLetter(
    absl::Span<const queue::DeadLetterRequest> requests) {
  MUSTER_RETURN_IF_ERROR(held_log_->RefreshTerm().status());
  std::vector<absl::Status> results(requests.size());
  std::vector<AckRequest> acks;
  for (size_t i = 0; i < requests.size(); ++i) {
    AckRequest ack{i, "", ""};
    results[i] = DeadLetterOne(requests[i], &ack);
    if (results[i].ok()) acks.push_back(std::move(ack));
  }
  MUSTER_RETURN_IF_ERROR(SendAcks(acks, &results));
  return results;
}

void StreamQueue::FollowLease(absl::Duration lease) {
  const int64_t before = lease_ns_.exchange(absl::ToInt64Nanoseconds(lease));
  const absl::Duration longer = lease - absl::Nanoseconds(before);
  // The server measures each lease from its last ack against the current setting, so held leases
  // move too.
  if (longer == absl::ZeroDuration()) return;
  leases_.Shift(longer);
  if (longer < absl::ZeroDuration()) {
    // What comes too early now may be with another worker (PutOff).
    delays_.Clear();
    return;
  }
  const absl::Duration now = Now();
  for (const DelayTable::Delay& delay : delays_.After(now)) {
    const std::string again = AgainAfter(delay.due - now);
    // If this is lost, the message comes later by as much as leases have become longer.
    prompt_->connection()->Publish({.subject = delay.ack_subject, .data = again}).IgnoreError();
  }
}

namespace {

// From a part below its bound on: a consumer that reaches it again and again counts all the while.
bool IsStalled(const nats::ConsumerState& consumer) {
  const int64_t most = consumer.max_ack_pending;
  return most > 0 && consumer.ack_pending >= most - most / 8;
}

}  // namespace

absl::StatusOr<nats::ConsumerState> StreamQueue::RefreshConsumer() {
  MUSTER_ASSIGN_OR_RETURN(nats::ConsumerState consumer,
                          jetstream_->GetConsumer(StreamOf(id_), kConsumer));
  FollowLease(consumer.ack_wait);
  stalled_ = IsStalled(consumer);
  TellOfPause(consumer.paused);
  return consumer;
}

absl::StatusOr<queue::QueueStats> StreamQueue::Stats() {
  MUSTER_ASSIGN_OR_RETURN(const nats::StreamState stream, jetstream_->GetStream(StreamOf(id_)));
  MUSTER_ASSIGN_OR_RETURN(const nats::ConsumerState consumer, RefreshConsumer());
  MUSTER_ASSIGN_OR_RETURN(queue::QueueStats stats, stats_reader_.Collect(stream, consumer));
  MUSTER_ASSIGN_OR_RETURN(stats.poison, poison_->Count(id_));
  stats.total_out = std::max<int64_t>(0, stats.total_out - stats.poison);
  return stats;
}

void StreamQueue::TellOfPause(absl::Duration left) {
  const bool paused = left > absl::ZeroDuration();
  if (paused_.exchange(paused) == paused) return;
  if (!paused) {
    base::Log(base::kInfo, "the consumer of a queue is no longer paused",
              {{"queue", id_.ToString()}});
    return;
  }
  base::Log(base::kWarning,
            "an administrator has paused the consumer of a queue, and no message comes: wait, or "
            "'nats consumer resume' it",
            {{"queue", id_.ToString()},
             {"stream", StreamOf(id_)},
             {"consumer", kConsumer},
             {"until", absl::FormatTime(absl::RFC3339_sec, options_->clock->Now() + left,
                                        absl::UTCTimeZone())}});
}

// The consumer counts as well as the stream: after its death, a server may have settled messages
// back in the stream, which it never delivers (QueueStatsReader).
absl::StatusOr<queue::QueueExtent> StreamQueue::Extent() {
  MUSTER_ASSIGN_OR_RETURN(const nats::StreamState stream, jetstream_->GetStream(StreamOf(id_)));
  MUSTER_ASSIGN_OR_RETURN(const nats::ConsumerState consumer, RefreshConsumer());
  queue::QueueExtent extent;
  extent.incarnation = IncarnationOf(stream);
  extent.next = stream.last_sequence + 1;
  extent.oldest = extent.next;
  if (stream.messages > 0) {
    extent.oldest =
        std::min(extent.next, std::max(stream.first_sequence, consumer.settled_sequence + 1));
  }
  return extent;
}

}  // namespace muster::queue::jetstream
