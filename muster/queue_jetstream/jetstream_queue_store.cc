#include "muster/queue_jetstream/jetstream_queue_store.h"

#include <algorithm>
#include <optional>
#include <type_traits>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "muster/base/mutex.h"
#include "muster/base/status_macros.h"
#include "muster/nats/settings_check.h"
#include "muster/queue/lease_metadata.h"
#include "muster/queue/limits.h"
#include "muster/queue_jetstream/metadata_codec.h"
#include "muster/queue_jetstream/names.h"
#include "muster/queue_jetstream/stream_queue.h"
#include "nlohmann/json.hpp"

namespace muster::queue_jetstream {
namespace {

using queue::QueueId;

// Of a message's bytes, what its headers and its subjects may take.
constexpr int64_t kMaxEnvelopeBytes = 8 << 10;
constexpr int64_t kMinPayloadBytes = 64 << 10;

// How many replicas there are, and for how long copies are known, each installation says itself.
constexpr absl::string_view kMayDiffer[] = {"num_replicas", "duplicate_window"};

absl::Status NoQueue(const QueueId& queue) {
  return absl::NotFoundError(absl::StrCat("no queue '", queue.ToString(), "'"));
}

const absl::Status& StatusOf(const absl::Status& status) { return status; }
template <typename T>
const absl::Status& StatusOf(const absl::StatusOr<T>& result) {
  return result.status();
}

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
    traits_.max_body_bytes = static_cast<size_t>(
        std::min<int64_t>(queue::kMaxBodyBytes, connection->max_payload() - kMaxEnvelopeBytes));
  }

  absl::Status Open() {
    MUSTER_RETURN_IF_ERROR(jetstream_.CheckEnabled());
    if (jetstream_.connection()->max_payload() < kMinPayloadBytes) {
      return absl::FailedPreconditionError(
          absl::StrCat("the NATS server takes messages of ", jetstream_.connection()->max_payload(),
                       " bytes only (max_payload); muster needs ", kMinPayloadBytes));
    }
    return notes_.Open();
  }

  const queue::Traits& traits() const override { return traits_; }

  absl::Status CreateQueue(const QueueId& queue, const queue::Metadata& metadata) override;
  absl::Status DeleteQueue(const QueueId& queue) override;
  absl::StatusOr<std::vector<queue::QueueInfo>> ListQueues(
      const queue::ListQueuesRequest& request) override;
  absl::StatusOr<queue::Metadata> GetMetadata(const QueueId& queue) override;
  absl::Status SetMetadata(const QueueId& queue, const queue::Metadata& metadata) override;

  absl::StatusOr<std::vector<queue::PutResult>> Put(
      const QueueId& queue, absl::Span<const queue::NewMessage> messages) override;
  absl::StatusOr<std::vector<queue::Message>> Receive(
      const QueueId& queue, const queue::ReceiveOptions& options) override;
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
  absl::StatusOr<int64_t> Redrive(const QueueId& queue, absl::Span<const std::string> message_ids,
                                  int64_t max_messages) override;
  absl::StatusOr<int64_t> PurgePoison(const QueueId& queue) override;
  absl::StatusOr<queue::QueueStats> Stats(const QueueId& queue) override;

 private:
  absl::StatusOr<queue::Metadata> ReadMetadata(const QueueId& queue);
  absl::Status CheckBodies(absl::Span<const queue::NewMessage> messages) const;
  // NotFound: there is no such queue.
  absl::StatusOr<std::shared_ptr<StreamQueue>> Find(const QueueId& queue);
  // Makes what of the queue is not there, and brings the settings of the rest up to date. Answers
  // the metadata that it has: `metadata`, or others that were there.
  absl::StatusOr<queue::Metadata> Make(const QueueId& queue, const queue::Metadata& metadata);
  // The metadata of a queue that Make ended for once, if all of it is there still.
  std::optional<queue::Metadata> IfMade(const QueueId& queue);
  // How long leases of a queue with this metadata last.
  absl::Duration LeaseBy(const queue::Metadata& metadata) const {
    return queue::VisibilityOf(metadata).value_or(options_.settings.lease);
  }
  // Has the consumer's leases last as `metadata` says.
  absl::Status EnsureConsumer(const QueueId& queue, const queue::Metadata& metadata);
  // Looks at how long the consumer has leases last. NotFound: there is none.
  absl::Status LookAtLease(const QueueId& queue);
  // Whether the server says that the queue is not there (any more), or not as Make made it:
  // somebody put another stream in its place, or gave its subject away.
  bool IsGone(const QueueId& queue);
  absl::StatusOr<bool> IsAsMade(const QueueId& queue);
  void Forget(const QueueId& queue);

  // What `call` answers, or NotFound: where nobody listens, the queue may be gone. Make says what
  // is in its place.
  template <typename Call>
  std::invoke_result_t<Call, StreamQueue&> On(const QueueId& queue, Call call) {
    MUSTER_ASSIGN_OR_RETURN(const std::shared_ptr<StreamQueue> found, Find(queue));
    auto result = call(*found);
    if (absl::IsUnavailable(StatusOf(result)) && IsGone(queue)) return NoQueue(queue);
    return result;
  }

  const Options options_;
  queue::Traits traits_;
  nats::JetStream jetstream_;
  nats::JetStream prompt_;
  AttemptNotes notes_{&prompt_, options_.settings};
  PoisonShelf poison_{&jetstream_};

  base::Mutex mu_;
  // Those that were seen. Shared with verbs that are under way while a queue is deleted.
  absl::flat_hash_map<QueueId, std::shared_ptr<StreamQueue>> queues_ ABSL_GUARDED_BY(mu_);
  // Those whose streams and consumer have today's settings: to make them again takes two requests
  // instead of five.
  absl::flat_hash_set<QueueId> made_ ABSL_GUARDED_BY(mu_);
};

absl::StatusOr<std::shared_ptr<StreamQueue>> JetStreamQueueStore::Find(const QueueId& queue) {
  MUSTER_RETURN_IF_ERROR(queue::ValidateQueueId(queue));
  {
    base::MutexLock lock(&mu_);
    const auto known = queues_.find(queue);
    if (known != queues_.end()) return known->second;
  }
  const auto consumer = jetstream_.GetConsumer(StreamOf(queue), kConsumer);
  if (absl::IsNotFound(consumer.status())) return NoQueue(queue);
  MUSTER_RETURN_IF_ERROR(consumer.status());
  base::MutexLock lock(&mu_);
  std::shared_ptr<StreamQueue>& made = queues_[queue];
  if (made == nullptr) {
    made = std::make_shared<StreamQueue>(queue, Ways{&jetstream_, &prompt_}, &notes_, &poison_,
                                         &options_, consumer->ack_wait);
  }
  return made;
}

bool JetStreamQueueStore::IsGone(const QueueId& queue) {
  const absl::StatusOr<bool> as_made = IsAsMade(queue);
  if (!absl::IsNotFound(as_made.status()) && as_made.value_or(true)) return false;
  Forget(queue);
  return true;
}

absl::StatusOr<bool> JetStreamQueueStore::IsAsMade(const QueueId& queue) {
  MUSTER_RETURN_IF_ERROR(jetstream_.GetConsumer(StreamOf(queue), kConsumer).status());
  MUSTER_ASSIGN_OR_RETURN(const nlohmann::json config, jetstream_.StreamConfig(StreamOf(queue)));
  return nats::DifferencesOf(StreamSettings(queue, options_.settings), config, kMayDiffer).empty();
}

void JetStreamQueueStore::Forget(const QueueId& queue) {
  base::MutexLock lock(&mu_);
  queues_.erase(queue);
  made_.erase(queue);
}

std::optional<queue::Metadata> JetStreamQueueStore::IfMade(const QueueId& queue) {
  {
    base::MutexLock lock(&mu_);
    if (!made_.contains(queue)) return std::nullopt;
  }
  absl::StatusOr<queue::Metadata> there = ReadMetadata(queue);
  if (!there.ok() || !LookAtLease(queue).ok()) return std::nullopt;
  return *std::move(there);
}

absl::Status JetStreamQueueStore::LookAtLease(const QueueId& queue) {
  MUSTER_ASSIGN_OR_RETURN(const nats::ConsumerState consumer,
                          jetstream_.GetConsumer(StreamOf(queue), kConsumer));
  base::MutexLock lock(&mu_);
  const auto known = queues_.find(queue);
  if (known != queues_.end()) known->second->FollowLease(consumer.ack_wait);
  return absl::OkStatus();
}

absl::Status JetStreamQueueStore::EnsureConsumer(const QueueId& queue,
                                                 const queue::Metadata& metadata) {
  const absl::Duration lease = LeaseBy(metadata);
  MUSTER_RETURN_IF_ERROR(jetstream_.EnsureConsumer(StreamOf(queue), ConsumerSettings(lease)));
  base::MutexLock lock(&mu_);
  const auto known = queues_.find(queue);
  if (known != queues_.end()) known->second->FollowLease(lease);
  return absl::OkStatus();
}

absl::Status JetStreamQueueStore::CreateQueue(const QueueId& queue,
                                              const queue::Metadata& metadata) {
  MUSTER_RETURN_IF_ERROR(queue::ValidateQueueId(queue));
  MUSTER_RETURN_IF_ERROR(queue::ValidateMetadata(metadata));
  std::optional<queue::Metadata> there = IfMade(queue);
  if (!there.has_value()) {
    MUSTER_ASSIGN_OR_RETURN(there, Make(queue, metadata));
    base::MutexLock lock(&mu_);
    made_.insert(queue);
  }
  if (*there == metadata) return absl::OkStatus();
  return absl::AlreadyExistsError(
      absl::StrCat("queue '", queue.ToString(), "' is there with other metadata"));
}

absl::StatusOr<queue::Metadata> JetStreamQueueStore::Make(const QueueId& queue,
                                                          const queue::Metadata& metadata) {
  MUSTER_RETURN_IF_ERROR(jetstream_.EnsureStream(AsideStreamSettings(queue, options_.settings)));
  const std::string text = EncodeMetadata(metadata);
  const absl::Status written =
      jetstream_
          .Publish({.subject = MetadataSubjectOf(queue),
                    .headers = {{"Nats-Expected-Last-Subject-Sequence", "0"}},
                    .data = text})
          .status();
  queue::Metadata there = metadata;
  if (nats::ErrorCodeOf(written) == nats::kWrongLastSequence) {
    MUSTER_ASSIGN_OR_RETURN(there, ReadMetadata(queue));
  } else {
    MUSTER_RETURN_IF_ERROR(written);
  }
  MUSTER_RETURN_IF_ERROR(jetstream_.EnsureStream(StreamSettings(queue, options_.settings)));
  MUSTER_RETURN_IF_ERROR(EnsureConsumer(queue, there));
  return there;
}

// Each step whatever the ones before found: an earlier call may have ended between two of them.
absl::Status JetStreamQueueStore::DeleteQueue(const QueueId& queue) {
  MUSTER_RETURN_IF_ERROR(queue::ValidateQueueId(queue));
  const absl::Status messages = jetstream_.DeleteStream(StreamOf(queue));
  if (!messages.ok() && !absl::IsNotFound(messages)) return messages;
  Forget(queue);
  MUSTER_RETURN_IF_ERROR(notes_.Forget(queue));
  const absl::Status aside = jetstream_.DeleteStream(AsideStreamOf(queue));
  if (absl::IsNotFound(messages) && absl::IsNotFound(aside)) return NoQueue(queue);
  return absl::IsNotFound(aside) ? absl::OkStatus() : aside;
}

absl::StatusOr<std::vector<queue::QueueInfo>> JetStreamQueueStore::ListQueues(
    const queue::ListQueuesRequest& request) {
  MUSTER_RETURN_IF_ERROR(queue::ValidateListQueues(request));
  MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> streams,
                          jetstream_.StreamNames(SubjectOf({request.account, "*"})));
  std::vector<queue::QueueInfo> infos;
  for (const std::string& stream : streams) {
    const std::optional<QueueId> queue = QueueOfStream(stream);
    if (!queue.has_value() || queue->account != request.account || queue->name <= request.after ||
        !absl::StartsWith(queue->name, request.prefix)) {
      continue;
    }
    if (infos.size() >= static_cast<size_t>(request.max_results)) break;
    absl::StatusOr<queue::Metadata> metadata = ReadMetadata(*queue);
    if (absl::IsNotFound(metadata.status())) continue;  // deleted meanwhile
    MUSTER_RETURN_IF_ERROR(metadata.status());
    infos.push_back({*queue, *std::move(metadata)});
  }
  return infos;
}

absl::StatusOr<queue::Metadata> JetStreamQueueStore::ReadMetadata(const QueueId& queue) {
  const auto stored = jetstream_.LastMessage(AsideStreamOf(queue), MetadataSubjectOf(queue));
  if (absl::IsNotFound(stored.status())) return NoQueue(queue);
  MUSTER_RETURN_IF_ERROR(stored.status());
  return DecodeMetadata(queue, stored->data);
}

absl::StatusOr<queue::Metadata> JetStreamQueueStore::GetMetadata(const QueueId& queue) {
  MUSTER_RETURN_IF_ERROR(Find(queue).status());
  if (const absl::Status looked = LookAtLease(queue); !looked.ok()) {
    if (!absl::IsNotFound(looked)) return looked;
    Forget(queue);
    return NoQueue(queue);
  }
  return ReadMetadata(queue);
}

absl::Status JetStreamQueueStore::SetMetadata(const QueueId& queue,
                                              const queue::Metadata& metadata) {
  MUSTER_RETURN_IF_ERROR(queue::ValidateMetadata(metadata));
  MUSTER_RETURN_IF_ERROR(Find(queue).status());
  const std::string text = EncodeMetadata(metadata);
  MUSTER_RETURN_IF_ERROR(
      jetstream_.Publish({.subject = MetadataSubjectOf(queue), .data = text}).status());
  const absl::Status follows = EnsureConsumer(queue, metadata);
  if (follows.ok()) return follows;
  // The next CreateQueue brings it up to date, in whichever process.
  base::MutexLock lock(&mu_);
  made_.erase(queue);
  return follows;
}

absl::Status JetStreamQueueStore::CheckBodies(absl::Span<const queue::NewMessage> messages) const {
  for (const queue::NewMessage& message : messages) {
    if (message.delay > absl::ZeroDuration()) {
      return absl::InvalidArgumentError("JetStream cannot put a message with a delay");
    }
    if (message.body.size() <= traits_.max_body_bytes) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("a body of ", message.body.size(), " bytes; this server takes ",
                     traits_.max_body_bytes, " (its max_payload less the envelope)"));
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

absl::StatusOr<std::vector<queue::Message>> JetStreamQueueStore::Peek(const QueueId& queue,
                                                                      int max_messages) {
  MUSTER_RETURN_IF_ERROR(queue::ValidateReceiveCount(max_messages, traits_));
  return On(queue, [&](StreamQueue& on) { return on.Peek(max_messages); });
}

absl::StatusOr<std::vector<absl::StatusOr<int>>> JetStreamQueueStore::BeginAttempt(
    const QueueId& queue, absl::Span<const queue::Receipt> receipts) {
  MUSTER_RETURN_IF_ERROR(queue::ValidateSettle(receipts.size()));
  MUSTER_ASSIGN_OR_RETURN(const std::shared_ptr<StreamQueue> found, Find(queue));
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
  MUSTER_RETURN_IF_ERROR(Find(queue).status());
  const std::optional<uint64_t> sequence = after.empty() ? 0 : SequenceOf(queue, after);
  if (!sequence.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", after, "' is no message of queue '", queue.ToString(), "'"));
  }
  return poison_.List(queue, *sequence, max_messages);
}

absl::StatusOr<int64_t> JetStreamQueueStore::Redrive(const QueueId& queue,
                                                     absl::Span<const std::string> message_ids,
                                                     int64_t max_messages) {
  MUSTER_RETURN_IF_ERROR(Find(queue).status());
  std::vector<uint64_t> sequences;
  for (const std::string& id : message_ids) {
    if (const auto sequence = SequenceOf(queue, id)) sequences.push_back(*sequence);
  }
  if (message_ids.empty()) {
    MUSTER_ASSIGN_OR_RETURN(sequences, poison_.Sequences(queue));
    const auto wanted = static_cast<size_t>(std::max<int64_t>(0, max_messages));
    sequences.resize(std::min(sequences.size(), wanted));
  }
  return poison_.Redrive(queue, sequences);
}

absl::StatusOr<int64_t> JetStreamQueueStore::PurgePoison(const QueueId& queue) {
  MUSTER_RETURN_IF_ERROR(Find(queue).status());
  return poison_.Purge(queue);
}

absl::StatusOr<queue::QueueStats> JetStreamQueueStore::Stats(const QueueId& queue) {
  return On(queue, [&](StreamQueue& on) { return on.Stats(); });
}

}  // namespace

absl::StatusOr<std::unique_ptr<queue::QueueStore>> OpenJetStreamQueues(nats::Connection* connection,
                                                                       const Options& options) {
  auto store = std::make_unique<JetStreamQueueStore>(connection, options);
  MUSTER_RETURN_IF_ERROR(store->Open());
  return store;
}

}  // namespace muster::queue_jetstream
