// How messages of a StreamQueue are received, and looked at.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/status.h"
#include "muster/queue/jetstream/stream_layout.h"
#include "muster/queue/jetstream/stream_queue.h"
#include "nlohmann/json.hpp"

namespace muster::queue::jetstream {
namespace {

// A lease that lapsed so long ago, and was not settled, never will be.
constexpr absl::Duration kForgetAfter = absl::Minutes(10);

// A stream acknowledges a message before its consumer has heard of it (seen with 2.15): who looks
// at once after a put may find nothing.
constexpr absl::Duration kSecondLook = absl::Milliseconds(2);
constexpr absl::Duration kSecondLookGrace = absl::Milliseconds(250);

// To the server, of a message that somebody else may have.
constexpr char kAtOnceAgain[] = "-NAK";

}  // namespace

absl::StatusOr<std::vector<nats::Incoming>> StreamQueue::Pull(int max_messages,
                                                              absl::Duration patience) {
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
    // There is no more, whatever the server calls it.
    if (reply.status != 0) return false;
    deliveries.push_back(std::move(reply));
    return deliveries.size() < static_cast<size_t>(max_messages);
  };
  const absl::Duration timeout =
      patience > absl::ZeroDuration() ? patience + kSecondLookGrace : options_->timeout;
  const absl::Status pulled = prompt_->connection()->RequestMany(request, timeout, take);
  // What has come is leased, whatever became of the rest.
  if (!pulled.ok() && deliveries.empty()) return pulled;
  return deliveries;
}

absl::StatusOr<std::vector<queue::Message>> StreamQueue::Receive(int max_messages) {
  const absl::Duration ends = Now() + lease();
  const absl::Time lapses = options_->clock->Now() + lease();
  leases_.Sweep(Now() - kForgetAfter);
  MUSTER_ASSIGN_OR_RETURN(std::vector<nats::Incoming> pulled,
                          Pull(max_messages, absl::ZeroDuration()));
  if (pulled.empty()) {
    // The first look was answered; that 2.9 does not always say when this one is over is no fault.
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
  const absl::Status recalled = Recall(absl::MakeSpan(messages), deliveries, ends);
  if (recalled.ok()) return messages;
  // Nobody will know of them: they go back, as far as the server can be told.
  std::vector<AckRequest> acks;
  for (const Delivery& delivery : deliveries) {
    acks.push_back({acks.size(), delivery.ack_subject, kAtOnceAgain});
  }
  std::vector<absl::Status> said(acks.size());
  SendAcks(acks, &said).IgnoreError();
  return recalled;
}

absl::Status StreamQueue::Recall(absl::Span<queue::Message> messages,
                                 absl::Span<const Delivery> deliveries, absl::Duration ends) {
  std::vector<uint64_t> again;
  for (const Delivery& delivery : deliveries) {
    if (delivery.deliveries > 1) again.push_back(delivery.sequence);
  }
  MUSTER_ASSIGN_OR_RETURN(const std::vector<std::optional<AttemptRecord>> records,
                          attempt_log_->Find(id_, again));
  size_t next = 0;
  for (size_t i = 0; i < deliveries.size(); ++i) {
    Lease lease{.deliveries = deliveries[i].deliveries, .ends = ends};
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
