// SPDX-License-Identifier: Apache-2.0
#include "muster/queue/jetstream/jetstream_queue_store.h"

#include <algorithm>
#include <optional>
#include <type_traits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/log.h"
#include "muster/base/status.h"
#include "muster/queue/jetstream/attempt_log.h"
#include "muster/queue/jetstream/dead_letter_store.h"
#include "muster/queue/jetstream/held_log.h"
#include "muster/queue/jetstream/queue_registry.h"
#include "muster/queue/jetstream/stream_queue.h"
#include "muster/queue/limits.h"

namespace muster::queue::jetstream {
namespace {

using queue::QueueId;

// The bytes of a message that its headers and subjects may take.
constexpr int64_t kMaxEnvelopeBytes = 8 << 10;
constexpr int64_t kMinPayloadBytes = 64 << 10;

class JetStreamQueueStore final : public queue::QueueStore {
 public:
  JetStreamQueueStore(nats::Connection* connection, const Options& options)
      : options_(options),
        jetstream_(connection, options.timeout),
        prompt_(options.prompt == nullptr ? connection : options.prompt, options.timeout) {
    traits_.engine = "jetstream";
    traits_.ack_survives = options.ack_survives;
    traits_.dedup = true;
    traits_.begins_together = true;
    traits_.long_poll = true;
    traits_.releases_holders = held_log_.is_on();
    traits_.longest_call = options.timeout;
    traits_.max_body_bytes = MaxBodyBytes();
  }

  absl::Status Open() {
    MUSTER_ASSIGN_OR_RETURN(const int api_level, jetstream_.ApiLevel());
    options_.settings.atomic_puts =
        options_.ack_survives == queue::Survives::kPower && api_level >= nats::kAtomicApiLevel;
    if (jetstream_.connection()->max_payload() < kMinPayloadBytes) {
      return absl::FailedPreconditionError(
          absl::StrCat("the NATS server takes messages of ", jetstream_.connection()->max_payload(),
                       " bytes only (max_payload); muster needs ", kMinPayloadBytes));
    }
    MUSTER_RETURN_IF_ERROR(attempt_log_.Open());
    return held_log_.Open();
  }

  const queue::Traits& traits() const override { return traits_; }

  absl::Status CreateQueue(const QueueId& queue, const queue::Metadata& metadata) override {
    return queues_.Create(queue, metadata);
  }
  absl::Status DeleteQueue(const QueueId& queue) override { return queues_.Delete(queue); }
  absl::StatusOr<std::vector<queue::QueueInfo>> ListQueues(
      const queue::ListQueuesRequest& request) override {
    return queues_.List(request);
  }
  absl::StatusOr<queue::Metadata> GetMetadata(const QueueId& queue) override {
    return queues_.GetMetadata(queue);
  }
  absl::Status SetMetadata(const QueueId& queue, const queue::Metadata& metadata) override {
    return queues_.SetMetadata(queue, metadata);
  }

  absl::StatusOr<std::vector<queue::PutResult>> Put(
      const QueueId& queue, absl::Span<const queue::NewMessage> messages) override;
  absl::StatusOr<std::vector<queue::Message>> Receive(
      const QueueId& queue, const queue::ReceiveOptions& options) override;
  absl::StatusOr<std::unique_ptr<Wait>> AwaitMessage(const QueueId& queue, absl::Duration patience,
                                                     TakeMessage take) override;
  absl::StatusOr<std::vector<queue::Message>> Peek(const QueueId& queue, int max_messages) override;
  absl::StatusOr<std::vector<absl::StatusOr<int>>> BeginAttempt(
      const QueueId& queue, absl::Span<const queue::Receipt> receipts) override;
  absl::StatusOr<std::vector<absl::StatusOr<queue::UpdateResult>>> Update(
      const QueueId& queue, absl::Span<const queue::UpdateRequest> requests) override;
  absl::StatusOr<std::vector<absl::Status>> Delete(
      const QueueId& queue, absl::Span<const queue::Receipt> receipts) override;
  absl::Status Clear(const QueueId& queue) override;
  absl::StatusOr<std::vector<absl::Status>> DeadLetter(
      const QueueId& queue, absl::Span<const queue::DeadLetterRequest> requests) override;
  absl::StatusOr<std::vector<queue::PoisonMessage>> ListPoison(const QueueId& queue,
                                                               absl::string_view after,
                                                               int max_messages) override;
  absl::StatusOr<std::vector<std::optional<queue::PoisonMessage>>> FindPoison(
      const QueueId& queue, absl::Span<const queue::PoisonName> names) override;
  absl::StatusOr<int64_t> Redrive(const QueueId& queue, absl::Span<const std::string> message_ids,
                                  int64_t max_messages) override;
  absl::StatusOr<int64_t> PurgePoison(const QueueId& queue) override;
  absl::StatusOr<int64_t> DropPoison(const QueueId& queue,
                                     absl::Span<const std::string> message_ids) override;
  absl::StatusOr<queue::QueueStats> Stats(const QueueId& queue) override;
  absl::StatusOr<queue::QueueExtent> Extent(const QueueId& queue) override;
  absl::StatusOr<std::vector<queue::StoredMessage>> Scan(const QueueId& queue, uint64_t from,
                                                         int max) override;
  absl::StatusOr<uint64_t> Reclaim(const QueueId& queue) override;
  absl::StatusOr<std::vector<queue::Released>> ReleaseHeldBy(const std::string& holder,
                                                             absl::Duration silence) override;

 private:
  // By the server that the connection is with now, or was last.
  size_t MaxBodyBytes() const {
    const int64_t room = jetstream_.connection()->max_payload() - kMaxEnvelopeBytes;
    return static_cast<size_t>(std::clamp<int64_t>(room, 0, queue::kMaxBodyBytes));
  }
  absl::Status CheckBodies(absl::Span<const queue::NewMessage> messages) const;

  // Returns the result of `call`, or NotFound: when no consumer or stream listens, the queue may be
  // gone.
  template <typename Call>
  std::invoke_result_t<Call, StreamQueue&> On(const QueueId& queue, Call call) {
    MUSTER_ASSIGN_OR_RETURN(const std::shared_ptr<StreamQueue> found, queues_.Find(queue));
    auto result = call(*found);
    if (absl::IsUnavailable(base::StatusOf(result)) && queues_.IsGone(queue)) return NoQueue(queue);
    return result;
  }

  Options options_;  // as Open leaves them
  queue::Traits traits_;
  nats::JetStream jetstream_;
  nats::JetStream prompt_;
  AttemptLog attempt_log_{&prompt_, options_.settings};
  HeldLog held_log_{&prompt_, options_.holder, options_.settings, options_.clock};
  DeadLetterStore poison_{&jetstream_};
  QueueRegistry queues_{JetStreamClients{&jetstream_, &prompt_, &waits_},
                        Notes{&attempt_log_, &held_log_}, &poison_, &options_};
  WaitingPulls waits_{prompt_.connection(), options_.clock};  // last: what arrives uses the others
};

// Not by the traits: the connection may be with another server by now, or with a server that was
// set otherwise, and a body that is found too large on the way comes behind others that are put.
absl::Status JetStreamQueueStore::CheckBodies(absl::Span<const queue::NewMessage> messages) const {
  const size_t most = MaxBodyBytes();
  for (const queue::NewMessage& message : messages) {
    if (message.delay > absl::ZeroDuration()) {
      return absl::InvalidArgumentError("JetStream cannot put a message with a delay");
    }
    if (message.body.size() <= most) continue;
    return absl::InvalidArgumentError(absl::StrCat("a body of ", message.body.size(),
                                                   " bytes; this server takes ", most,
                                                   " (its max_payload less the envelope)"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<queue::PutResult>> JetStreamQueueStore::Put(
    const QueueId& queue, absl::Span<const queue::NewMessage> messages) {
  MUSTER_RETURN_IF_ERROR(queue::ValidatePut(messages));
  MUSTER_RETURN_IF_ERROR(CheckBodies(messages));
  return On(queue, [&](StreamQueue& on) { return on.Put(messages); });
}

absl::StatusOr<std::vector<queue::Message>> JetStreamQueueStore::Receive(
    const QueueId& queue, const queue::ReceiveOptions& options) {
  MUSTER_RETURN_IF_ERROR(queue::ValidateReceive(options, traits_));
  return On(queue, [&](StreamQueue& on) { return on.Receive(options.max_messages); });
}

absl::StatusOr<std::unique_ptr<queue::QueueStore::Wait>> JetStreamQueueStore::AwaitMessage(
    const QueueId& queue, absl::Duration patience, TakeMessage take) {
  MUSTER_RETURN_IF_ERROR(queue::ValidateWait(patience));
  MUSTER_ASSIGN_OR_RETURN(const std::shared_ptr<StreamQueue> found, queues_.Find(queue));
  return waits_.Begin(
      queue, patience, [found, take = std::move(take)](absl::StatusOr<Arrival> arrival) {
        return arrival.ok() ? found->Arrive(*arrival, take) : take(arrival.status());
      });
}

absl::StatusOr<std::vector<queue::Message>> JetStreamQueueStore::Peek(const QueueId& queue,
                                                                      int max_messages) {
  MUSTER_RETURN_IF_ERROR(queue::ValidateReceiveCount(max_messages, traits_));
  return On(queue, [&](StreamQueue& on) { return on.Peek(max_messages); });
}

absl::StatusOr<std::vector<absl::StatusOr<int>>> JetStreamQueueStore::BeginAttempt(
    const QueueId& queue, absl::Span<const queue::Receipt> receipts) {
  MUSTER_RETURN_IF_ERROR(queue::ValidateSettle(receipts.size()));
  MUSTER_ASSIGN_OR_RETURN(const std::shared_ptr<StreamQueue> found, queues_.Find(queue));
  return found->BeginAttempt(receipts);
}

absl::StatusOr<std::vector<absl::StatusOr<queue::UpdateResult>>> JetStreamQueueStore::Update(
    const QueueId& queue, absl::Span<const queue::UpdateRequest> requests) {
  MUSTER_RETURN_IF_ERROR(queue::ValidateSettle(requests.size()));
  for (const queue::UpdateRequest& request : requests) {
    MUSTER_RETURN_IF_ERROR(queue::ValidateUpdate(request));
  }
  return On(queue, [&](StreamQueue& on) { return on.Update(requests); });
}

absl::StatusOr<std::vector<absl::Status>> JetStreamQueueStore::Delete(
    const QueueId& queue, absl::Span<const queue::Receipt> receipts) {
  MUSTER_RETURN_IF_ERROR(queue::ValidateSettle(receipts.size()));
  return On(queue, [&](StreamQueue& on) { return on.Delete(receipts); });
}

absl::Status JetStreamQueueStore::Clear(const QueueId& queue) {
  return On(queue, [&](StreamQueue& on) { return on.Clear(); });
}

absl::StatusOr<std::vector<absl::Status>> JetStreamQueueStore::DeadLetter(
    const QueueId& queue, absl::Span<const queue::DeadLetterRequest> requests) {
  MUSTER_RETURN_IF_ERROR(queue::ValidateSettle(requests.size()));
  return On(queue, [&](StreamQueue& on) { return on.DeadLetter(requests); });
}

absl::StatusOr<std::vector<queue::PoisonMessage>> JetStreamQueueStore::ListPoison(
    const QueueId& queue, absl::string_view after, int max_messages) {
  MUSTER_RETURN_IF_ERROR(queue::ValidateListPoison(max_messages));
  MUSTER_RETURN_IF_ERROR(queues_.Find(queue).status());
  return poison_.List(queue, after, max_messages);
}

absl::StatusOr<std::vector<std::optional<queue::PoisonMessage>>> JetStreamQueueStore::FindPoison(
    const QueueId& queue, absl::Span<const queue::PoisonName> names) {
  MUSTER_RETURN_IF_ERROR(queue::ValidateFindPoison(names.size()));
  MUSTER_RETURN_IF_ERROR(queues_.Find(queue).status());
  return poison_.FindAll(queue, names);
}

absl::StatusOr<int64_t> JetStreamQueueStore::Redrive(const QueueId& queue,
                                                     absl::Span<const std::string> message_ids,
                                                     int64_t max_messages) {
  MUSTER_RETURN_IF_ERROR(queues_.Find(queue).status());
  return poison_.Redrive(queue, message_ids, max_messages);
}

absl::StatusOr<int64_t> JetStreamQueueStore::PurgePoison(const QueueId& queue) {
  MUSTER_RETURN_IF_ERROR(queues_.Find(queue).status());
  return poison_.Purge(queue);
}

absl::StatusOr<int64_t> JetStreamQueueStore::DropPoison(const QueueId& queue,
                                                        absl::Span<const std::string> message_ids) {
  MUSTER_RETURN_IF_ERROR(queues_.Find(queue).status());
  return poison_.Drop(queue, message_ids);
}

absl::StatusOr<queue::QueueStats> JetStreamQueueStore::Stats(const QueueId& queue) {
  return On(queue, [&](StreamQueue& on) { return on.Stats(); });
}

absl::StatusOr<queue::QueueExtent> JetStreamQueueStore::Extent(const QueueId& queue) {
  return On(queue, [&](StreamQueue& on) { return on.Extent(); });
}

absl::StatusOr<std::vector<queue::StoredMessage>> JetStreamQueueStore::Scan(const QueueId& queue,
                                                                            uint64_t from,
                                                                            int max) {
  MUSTER_RETURN_IF_ERROR(queue::ValidateScan(max));
  return On(queue, [&](StreamQueue& on) { return on.Scan(from, max); });
}

absl::StatusOr<uint64_t> JetStreamQueueStore::Reclaim(const QueueId& queue) {
  return On(queue, [&](StreamQueue& on) { return on.Reclaim(); });
}

// What is taken from the log and not given back comes again when its lease lapses.
absl::StatusOr<std::vector<queue::Released>> JetStreamQueueStore::ReleaseHeldBy(
    const std::string& holder, absl::Duration silence) {
  MUSTER_ASSIGN_OR_RETURN(const HeldLog::Held held, held_log_.TakeFrom(holder));
  std::vector<queue::Released> released;
  for (const auto& [name, deliveries] : held) {
    const QueueId queue{name.first, name.second};
    const absl::StatusOr<int64_t> messages = On(
        queue,
        [&given = deliveries, silence](StreamQueue& on) { return on.GiveBackOf(given, silence); });
    base::LogUnlessOk(base::kWarning, "what a dead instance held waits for its lease",
                      messages.status(), {{"instance", holder}, {"queue", queue.ToString()}});
    if (messages.value_or(0) > 0) released.push_back({queue, *messages});
  }
  return released;
}

}  // namespace

absl::StatusOr<std::unique_ptr<queue::QueueStore>> OpenJetStreamQueues(nats::Connection* connection,
                                                                       const Options& options) {
  auto store = std::make_unique<JetStreamQueueStore>(connection, options);
  MUSTER_RETURN_IF_ERROR(store->Open());
  return store;
}

}  // namespace muster::queue::jetstream
