// SPDX-License-Identifier: Apache-2.0

// Receive, Peek, Scan and GiveBackOf of StreamQueue.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
#include "muster/base/log.h"
#include "muster/base/status.h"
#include "muster/nats/status.h"
#include "muster/queue/jetstream/stream_layout.h"
#include "muster/queue/jetstream/stream_queue.h"
#include "muster/queue/limits.h"

namespace muster::queue::jetstream {
namespace {

// An unsettled lease that lapsed this long ago is never settled.
constexpr absl::Duration kForgetAfter = absl::Minutes(10);

// A message that came by a waiting pull has its lease from the moment of its delivery, which only
// the server knows. The message is taken if it cannot have been delivered longer ago than this part
// of its lease: a process that slept meanwhile must not begin what another one has by now.
constexpr int kTrustedPartOfLease = 3;

// Messages that are given back together.
constexpr size_t kReclaimStep = 1024;

// Messages that are asked for together: bodies of up to a mebibyte each may be on their way.
constexpr uint64_t kScanWindow = 32;

}  // namespace

absl::StatusOr<std::vector<queue::Message>> StreamQueue::Receive(int max_messages) {
  // Read before the pull: a lease must not seem to last longer here than at the server.
  const absl::Duration asked = Now();
  MUSTER_ASSIGN_OR_RETURN(const int64_t term, held_log_->RefreshTerm());
  const absl::Time asked_at = options_->clock->Now();
  leases_.Sweep(Now() - kForgetAfter);
  MUSTER_ASSIGN_OR_RETURN(std::vector<nats::Incoming> pulled, PullWhatIsThere(max_messages));
  const absl::Duration ends = asked + lease();  // PullWhatIsThere may have learnt another one
  const absl::Time lapses = asked_at + lease();
  std::vector<queue::Message> messages;
  std::vector<Delivery> deliveries;
  for (nats::Incoming& incoming : pulled) {
    absl::StatusOr<Delivery> delivery = ParseAckSubject(incoming.reply);
    if (!delivery.ok()) {  // it is not from the server: the others are
      base::LogUnlessOk(base::kWarning, "a message to a pull is dropped", delivery.status(),
                        {{"queue", id_.ToString()}});
      continue;
    }
    messages.push_back(MessageOf(*delivery, std::move(incoming.data), lapses));
    deliveries.push_back(*std::move(delivery));
  }
  held_.Add(deliveries);
  absl::StatusOr<std::vector<Early>> recalled =
      Recall(absl::MakeSpan(messages), deliveries, {.ends = ends, .term = term});
  if (recalled.ok()) {
    PutOff(*std::move(recalled), deliveries, &messages);
    return messages;
  }
  // The caller does not get these messages, so return them to the server; best effort.
  std::vector<AckRequest> acks;
  for (const Delivery& delivery : deliveries) {
    acks.push_back({acks.size(), delivery.ack_subject, kAtOnceAgain});
  }
  held_.GivingBack(deliveries);
  std::vector<absl::Status> said(acks.size());
  SendAcks(acks, &said).IgnoreError();
  return recalled.status();
}

queue::Message StreamQueue::MessageOf(const Delivery& delivery, std::string body,
                                      absl::Time lapses) const {
  queue::Message message;
  message.message_id = MessageIdOf(id_, delivery.sequence);
  message.body = std::move(body);
  message.insertion_time = delivery.stored;
  message.expiration_time = absl::InfiniteFuture();
  message.next_visible_time = lapses;
  message.dequeue_count = delivery.deliveries;
  message.receipt = ReceiptOf(id_, delivery);
  message.position = delivery.sequence;
  return message;
}

absl::Duration StreamQueue::EarliestDelivery(const Delivery& delivery, absl::Duration asked) const {
  if (delivery.deliveries > 1) return asked;
  // The first delivery comes after the put. The two clocks may differ; a server's clock that is
  // behind makes the lease seem shorter than it is.
  const absl::Duration age =
      std::max(options_->clock->Now() - delivery.stored, absl::ZeroDuration());
  return std::max(asked, Now() - age);
}

bool StreamQueue::Arrive(const Arrival& arrival, const queue::QueueStore::TakeMessage& take) {
  const absl::StatusOr<Delivery> delivery = ParseAckSubject(arrival.message.reply);
  if (!delivery.ok()) return take(delivery.status());
  const absl::Duration now = Now();
  const absl::Duration since = EarliestDelivery(*delivery, arrival.asked);
  if (now - since > lease() / kTrustedPartOfLease) {
    // First, so that the caller who then receives finds it.
    prompt_->connection()
        ->Publish({.subject = delivery->ack_subject, .data = kAtOnceAgain})
        .IgnoreError();
    take(absl::AbortedError("a message came, and it is not known when"));
    return true;
  }
  const absl::StatusOr<int64_t> term = held_log_->RefreshTerm();
  if (!term.ok()) {
    take(term.status());
    return false;
  }
  const absl::Duration ends = since + lease();
  std::vector<queue::Message> messages = {
      MessageOf(*delivery, arrival.message.data, options_->clock->Now() + (ends - now))};
  const std::vector<Delivery> deliveries = {*delivery};
  held_.Add(deliveries);
  absl::StatusOr<std::vector<Early>> recalled =
      Recall(absl::MakeSpan(messages), deliveries, {.ends = ends, .term = *term});
  if (recalled.ok()) {
    PutOff(*std::move(recalled), deliveries, &messages);
    if (messages.empty()) {
      take(absl::AbortedError("a message came before its delay was over, and was given back"));
      return true;
    }
    if (take(std::move(messages.front()))) return true;
  } else {
    take(recalled.status());
  }
  leases_.End(delivery->sequence, delivery->deliveries);
  held_.GivingBack(deliveries);
  return false;
}

absl::StatusOr<std::vector<StreamQueue::Early>> StreamQueue::Recall(
    absl::Span<queue::Message> messages, absl::Span<const Delivery> deliveries, const Lease& as) {
  std::vector<MessageKey> again;
  for (const Delivery& delivery : deliveries) {
    if (delivery.deliveries > 1) again.push_back(delivery.key());
  }
  MUSTER_ASSIGN_OR_RETURN(const std::vector<std::optional<AttemptRecord>> records,
                          attempt_log_->Find(id_, again));
  MUSTER_CHECK(records.size() == again.size(), "records ", records.size(), ", sequences ",
               again.size());
  std::vector<Early> early;
  const int64_t now_ns = absl::ToUnixNanos(options_->clock->Now());
  size_t next = 0;
  for (size_t i = 0; i < deliveries.size(); ++i) {
    Lease lease = as;
    lease.deliveries = deliveries[i].deliveries;
    if (lease.deliveries > 1) {
      if (const std::optional<AttemptRecord>& record = records[next++]; record.has_value()) {
        lease.attempts = record->attempts;
        lease.interrupted = record->ended ? record->suspect : true;
        const bool is_early = record->due_ns > now_ns && deliveries[i].sequence >= reclaimed_below_;
        if (is_early) early.push_back({i, *record});
      }
    }
    messages[i].attempts = lease.attempts;
    messages[i].interrupted = lease.interrupted;
    leases_.Put(deliveries[i].sequence, lease);
  }
  return early;
}

// No message is put off by more than leases have become shorter: the clocks of two processes
// differ. One whose note cannot be written is delivered: it would be put off each time that it
// comes.
void StreamQueue::PutOff(std::vector<Early> early, absl::Span<const Delivery> deliveries,
                         std::vector<queue::Message>* messages) {
  if (early.empty()) return;
  const absl::StatusOr<nats::ConsumerState> consumer = RefreshConsumer();
  if (!consumer.ok()) return;
  std::vector<AckRequest> acks;
  std::vector<Delivery> given_back;
  for (auto& [place, record] : early) {
    const absl::Duration left =
        std::min(absl::FromUnixNanos(record.due_ns) - options_->clock->Now(),
                 absl::Nanoseconds(record.lease_ns) - consumer->ack_wait);
    if (left <= absl::ZeroDuration()) continue;
    record.deliveries = deliveries[place].deliveries;
    record.lease_ns = absl::ToInt64Nanoseconds(consumer->ack_wait);
    if (!attempt_log_->Write(id_, record).ok()) continue;
    acks.push_back({acks.size(), deliveries[place].ack_subject, AgainAfter(left)});
    given_back.push_back(deliveries[place]);
    leases_.End(deliveries[place].sequence, deliveries[place].deliveries);
    (*messages)[place].receipt.clear();
  }
  std::erase_if(*messages, [](const queue::Message& message) { return message.receipt.empty(); });
  held_.GivingBack(given_back);
  // If this fails, they come when their leases lapse.
  std::vector<absl::Status> said(acks.size());
  SendAcks(acks, &said).IgnoreError();
}

absl::StatusOr<int64_t> StreamQueue::GiveBackOf(absl::Span<const Delivery> held,
                                                absl::Duration silence) {
  MUSTER_ASSIGN_OR_RETURN(const nats::ConsumerState consumer, RefreshConsumer());
  // A listener renews its leases every third of their duration.
  if (silence > consumer.ack_wait * 2 / 3) return 0;
  std::vector<Delivery> open;
  std::vector<MessageKey> keys;
  for (const Delivery& delivery : held) {
    if (delivery.sequence <= consumer.settled_sequence) continue;
    open.push_back(delivery);
    keys.push_back(delivery.key());
  }
  MUSTER_ASSIGN_OR_RETURN(const auto records, attempt_log_->Find(id_, keys));
  std::vector<AckRequest> acks;
  for (size_t i = 0; i < open.size(); ++i) {
    const std::optional<AttemptRecord>& record = records[i];
    if (record.has_value() && (record->ended ? record->deliveries >= open[i].deliveries
                                             : record->deliveries > open[i].deliveries)) {
      continue;
    }
    acks.push_back({acks.size(), open[i].ack_subject, kAtOnceAgain});
  }
  // The server ignores what is said of a message that is settled or waits to be delivered again.
  std::vector<absl::Status> said(acks.size());
  MUSTER_RETURN_IF_ERROR(SendAcks(acks, &said));
  return std::count_if(said.begin(), said.end(), [](const absl::Status& ack) { return ack.ok(); });
}

bool StreamQueue::IsForgettable() {
  leases_.Sweep(Now() - kForgetAfter);
  return leases_.empty() && delays_.After(Now()).empty() && held_.empty() && reclaimed_below_ == 0;
}

// The server does not say which messages are leased: all that were delivered and are not settled
// are, or wait to be delivered again. It ignores what is said of others. Those that wait already
// keep their order, hence the result.
//
// One message that waits for long, such as that of a held key, may have millions of places behind
// it whose messages are settled and gone from the stream. So each step begins at a message that is
// there.
absl::StatusOr<uint64_t> StreamQueue::Reclaim() {
  MUSTER_ASSIGN_OR_RETURN(const nats::ConsumerState consumer, RefreshConsumer());
  leases_.EndAll();
  delays_.Clear();
  held_.Clear();
  const uint64_t end = consumer.delivered_sequence + 1;
  reclaimed_below_ = end;
  if (consumer.ack_pending == 0) return end;
  for (uint64_t from = consumer.settled_sequence + 1; from < end; from += kReclaimStep) {
    const auto next = jetstream_->NextMessage(StreamOf(id_), from, SubjectOf(id_));
    if (absl::IsNotFound(next.status()) && !nats::IsNoStream(next.status())) break;
    MUSTER_RETURN_IF_ERROR(next.status());
    from = next->sequence;
    if (from >= end) break;
    std::vector<AckRequest> acks;
    for (uint64_t sequence = from; sequence < std::min(end, from + kReclaimStep); ++sequence) {
      acks.push_back({acks.size(), AckSubjectOf(id_, sequence, consumer.delivery), kAtOnceAgain});
    }
    std::vector<absl::Status> said(acks.size());
    MUSTER_RETURN_IF_ERROR(SendAcks(acks, &said));
    for (const absl::Status& ack : said) MUSTER_RETURN_IF_ERROR(ack);
  }
  return end;
}

absl::StatusOr<std::vector<queue::Message>> StreamQueue::Peek(int max_messages) {
  const std::string stream = StreamOf(id_);
  MUSTER_ASSIGN_OR_RETURN(const nats::ConsumerState consumer, RefreshConsumer());
  std::vector<queue::Message> messages;
  for (uint64_t from = consumer.delivered_sequence + 1;
       messages.size() < static_cast<size_t>(max_messages);) {
    const auto stored = jetstream_->NextMessage(stream, from, SubjectOf(id_));
    if (absl::IsNotFound(stored.status())) break;
    MUSTER_RETURN_IF_ERROR(stored.status());
    queue::Message& message = messages.emplace_back();
    message.message_id = MessageIdOf(id_, stored->sequence);
    message.body = stored->data;
    message.insertion_time = message.next_visible_time = stored->time;
    message.expiration_time = absl::InfiniteFuture();
    from = stored->sequence + 1;
  }
  return messages;
}

// The answers of a window are of different moments. So they count only as far as the stream reached
// before: the copy of a message that is deleted meanwhile lies beyond, and is read later. The first
// answer is of one moment, and counts wherever its message lies: nothing lies between. The consumer
// is read first, so that the stream reaches as far as all that was settled by then.
absl::StatusOr<std::vector<queue::StoredMessage>> StreamQueue::Scan(uint64_t from, int max) {
  const std::string name = StreamOf(id_);
  MUSTER_ASSIGN_OR_RETURN(const nats::ConsumerState consumer, RefreshConsumer());
  MUSTER_ASSIGN_OR_RETURN(const nats::StreamState stream, jetstream_->GetStream(name));
  const uint64_t last = stream.messages > 0 ? stream.last_sequence : 0;
  from = std::max({from, stream.first_sequence, consumer.settled_sequence + 1});
  std::vector<queue::StoredMessage> messages;
  size_t bytes = 0;
  while (from <= last && messages.size() < static_cast<size_t>(max) &&
         bytes < queue::kMaxScanBytes) {
    const uint64_t left = std::min(last - from + 1, static_cast<uint64_t>(max) - messages.size());
    MUSTER_ASSIGN_OR_RETURN(std::vector<nats::StoredMessage> page,
                            jetstream_->NextMessages(
                                name, from, std::min<uint64_t>(left, kScanWindow), SubjectOf(id_)));
    if (page.empty()) break;
    for (nats::StoredMessage& stored : page) {
      const bool is_first = &stored == &page.front();
      if (stored.sequence > last && !is_first) break;
      from = stored.sequence + 1;
      bytes += stored.data.size();
      messages.push_back(
          {MessageIdOf(id_, stored.sequence), std::move(stored.data), stored.sequence});
    }
  }
  return messages;
}

}  // namespace muster::queue::jetstream
