// Receive, Peek and GiveBackOf of StreamQueue.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
#include "muster/base/status.h"
#include "muster/queue/jetstream/stream_layout.h"
#include "muster/queue/jetstream/stream_queue.h"
#include "nlohmann/json.hpp"

namespace muster::queue::jetstream {
namespace {

// An unsettled lease that lapsed this long ago is never settled.
constexpr absl::Duration kForgetAfter = absl::Minutes(10);

// A stream acknowledges a message before its consumer has seen it (seen with 2.15): a receive right
// after a put may find nothing. So an empty receive looks a second time, and waits this long.
constexpr absl::Duration kSecondLook = absl::Milliseconds(2);
constexpr absl::Duration kSecondLookGrace = absl::Milliseconds(250);

// Tells the server to deliver a message again at once.
constexpr char kAtOnceAgain[] = "-NAK";

}  // namespace

absl::StatusOr<std::vector<nats::Incoming>> StreamQueue::Pull(int max_messages,
                                                              absl::Duration patience) {
  MUSTER_CHECK(max_messages > 0, "max_messages ", max_messages);
  nlohmann::json wish = {{"batch", max_messages}};
  if (patience > absl::ZeroDuration()) {
    wish["expires"] = absl::ToInt64Nanoseconds(patience);
  } else {
    wish["no_wait"] = true;
  }
  const std::string text = wish.dump();
  const nats::Outgoing request{
      .subject = absl::StrCat("$JS.API.CONSUMER.MSG.NEXT.", StreamOf(id_), ".", kConsumer),
      .data = text};
  std::vector<nats::Incoming> deliveries;
  const auto take = [&](nats::Incoming reply) {
    // Any status ends the pull: no more deliveries follow, whatever the reason.
    if (reply.status != 0) return false;
    deliveries.push_back(std::move(reply));
    return deliveries.size() < static_cast<size_t>(max_messages);
  };
  const absl::Duration timeout =
      patience > absl::ZeroDuration() ? patience + kSecondLookGrace : options_->timeout;
  const absl::Status pulled = prompt_->connection()->RequestMany(request, timeout, take);
  // The deliveries that came are leased, even if the pull failed later.
  if (!pulled.ok() && deliveries.empty()) return pulled;
  return deliveries;
}

absl::StatusOr<std::vector<queue::Message>> StreamQueue::Receive(int max_messages) {
  // Read before the pull: a lease must not seem to last longer here than at the server.
  const absl::Duration ends = Now() + lease();
  MUSTER_ASSIGN_OR_RETURN(const int64_t term, held_log_->RefreshTerm());
  const absl::Time lapses = options_->clock->Now() + lease();
  leases_.Sweep(Now() - kForgetAfter);
  MUSTER_ASSIGN_OR_RETURN(std::vector<nats::Incoming> pulled,
                          Pull(max_messages, absl::ZeroDuration()));
  if (pulled.empty()) {
    // Ignore an error here: the first pull was answered, and 2.9 does not always report the end of
    // the second.
    absl::StatusOr<std::vector<nats::Incoming>> second = Pull(max_messages, kSecondLook);
    if (second.ok()) pulled = *std::move(second);
  }
  std::vector<queue::Message> messages;
  std::vector<Delivery> deliveries;
  for (nats::Incoming& incoming : pulled) {
    MUSTER_ASSIGN_OR_RETURN(Delivery delivery, ParseAckSubject(incoming.reply));
    queue::Message& message = messages.emplace_back();
    message.message_id = MessageIdOf(id_, delivery.sequence);
    message.body = std::move(incoming.data);
    message.insertion_time = delivery.stored;
    message.expiration_time = absl::InfiniteFuture();
    message.next_visible_time = lapses;
    message.dequeue_count = delivery.deliveries;
    message.receipt = ReceiptOf(id_, delivery);
    deliveries.push_back(std::move(delivery));
  }
  held_.Add(deliveries);
  const absl::Status recalled =
      Recall(absl::MakeSpan(messages), deliveries, {.ends = ends, .term = term});
  if (recalled.ok()) return messages;
  // The caller does not get these messages, so return them to the server; best effort.
  std::vector<AckRequest> acks;
  for (const Delivery& delivery : deliveries) {
    acks.push_back({acks.size(), delivery.ack_subject, kAtOnceAgain});
  }
  held_.GivingBack(deliveries);
  std::vector<absl::Status> said(acks.size());
  SendAcks(acks, &said).IgnoreError();
  return recalled;
}

absl::Status StreamQueue::Recall(absl::Span<queue::Message> messages,
                                 absl::Span<const Delivery> deliveries, const Lease& as) {
  std::vector<MessageKey> again;
  for (const Delivery& delivery : deliveries) {
    if (delivery.deliveries > 1) again.push_back(delivery.key());
  }
  MUSTER_ASSIGN_OR_RETURN(const std::vector<std::optional<AttemptRecord>> records,
                          attempt_log_->Find(id_, again));
  MUSTER_CHECK(records.size() == again.size(), "records ", records.size(), ", sequences ",
               again.size());
  size_t next = 0;
  for (size_t i = 0; i < deliveries.size(); ++i) {
    Lease lease = as;
    lease.deliveries = deliveries[i].deliveries;
    if (lease.deliveries > 1) {
      if (const std::optional<AttemptRecord>& record = records[next++]; record.has_value()) {
        lease.attempts = record->attempts;
        lease.interrupted = record->ended ? record->suspect : true;
      }
    }
    messages[i].attempts = lease.attempts;
    messages[i].interrupted = lease.interrupted;
    leases_.Put(deliveries[i].sequence, lease);
  }
  return absl::OkStatus();
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

}  // namespace muster::queue::jetstream
