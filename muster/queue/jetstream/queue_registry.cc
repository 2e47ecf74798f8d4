// SPDX-License-Identifier: Apache-2.0

// Metadata lies in the aside stream as a JSON object of strings.
#include "muster/queue/jetstream/queue_registry.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "muster/base/clock.h"
#include "muster/base/status.h"
#include "muster/base/text.h"
#include "muster/nats/status.h"
#include "muster/nats/stream_provisioner.h"
#include "muster/queue/jetstream/stream_layout.h"
#include "muster/queue/limits.h"
#include "nlohmann/json.hpp"

namespace muster::queue::jetstream {

namespace {

using nlohmann::json;
using queue::QueueId;

// Each installation sets the number of replicas and the duration of deduplication itself, and a
// process of an older muster allows no atomic batches, so these may differ.
constexpr absl::string_view kMayDiffer[] = {"num_replicas", "duplicate_window", nats::kAllowAtomic};

constexpr absl::Duration kFirstLook = absl::Milliseconds(2);

// A delete is over within moments; more of them in a row is a client that deletes all the time.
constexpr int kMakeTries = 5;

// A value that is no UTF-8, and so cannot stand in JSON, is an object with its bytes.
constexpr char kBytes[] = "base64";

std::string EncodeMetadata(const queue::Metadata& metadata) {
  json object = json::object();
  for (const auto& [name, value] : metadata) {
    if (base::IsValidUtf8(value)) {
      object[name] = value;
    } else {
      object[name] = {{kBytes, absl::Base64Escape(value)}};
    }
  }
  return object.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::optional<std::string> DecodeValue(const json& value) {
  if (value.is_string()) return value.get<std::string>();
  std::string bytes;
  if (!value.is_object() || !value.contains(kBytes) || !value[kBytes].is_string() ||
      !absl::Base64Unescape(value[kBytes].get<std::string>(), &bytes)) {
    return std::nullopt;
  }
  return bytes;
}

// DataLoss: `text` is not an object of strings. The error names `queue`.
absl::StatusOr<queue::Metadata> DecodeMetadata(const QueueId& queue, const std::string& text) {
  const json object = json::parse(text, nullptr, /*allow_exceptions=*/false);
  queue::Metadata metadata;
  for (const auto& [name, value] : object.items()) {
    if (std::optional<std::string> read = DecodeValue(value)) metadata[name] = *std::move(read);
  }
  if (object.is_object() && metadata.size() == object.size()) return metadata;
  return absl::DataLossError(
      absl::StrCat("the metadata of queue '", queue.ToString(), "' cannot be read"));
}

}  // namespace

absl::Status NoQueue(const QueueId& queue) {
  return absl::NotFoundError(absl::StrCat("no queue '", queue.ToString(), "'"));
}

absl::StatusOr<std::shared_ptr<StreamQueue>> QueueRegistry::Find(const QueueId& queue) {
  MUSTER_RETURN_IF_ERROR(queue::ValidateQueueId(queue));
  {
    base::MutexLock lock(&mu_);
    const auto known = queues_.find(queue);
    if (known != queues_.end()) return known->second;
  }
  const auto consumer = jetstream_->GetConsumer(StreamOf(queue), kConsumer);
  if (absl::IsNotFound(consumer.status())) return NoQueue(queue);
  MUSTER_RETURN_IF_ERROR(consumer.status());
  base::MutexLock lock(&mu_);
  ForgetIdleLocked();
  std::shared_ptr<StreamQueue>& made = queues_[queue];
  if (made == nullptr) {
    made = std::make_shared<StreamQueue>(queue, clients_, notes_, poison_, options_,
                                         consumer->ack_wait);
  }
  return made;
}

bool QueueRegistry::IsGone(const QueueId& queue) {
  // A server that is away would not answer this either, and double the time of each call.
  if (!jetstream_->connection()->connected()) return false;
  const absl::StatusOr<bool> as_made = IsAsMade(queue);
  if (!absl::IsNotFound(as_made.status()) && as_made.value_or(true)) return false;
  Forget(queue);
  return true;
}

absl::StatusOr<bool> QueueRegistry::IsAsMade(const QueueId& queue) {
  MUSTER_RETURN_IF_ERROR(jetstream_->GetConsumer(StreamOf(queue), kConsumer).status());
  MUSTER_ASSIGN_OR_RETURN(const nlohmann::json config, jetstream_->StreamConfig(StreamOf(queue)));
  return nats::DifferencesOf(StreamSettings(queue, options_->settings), config, kMayDiffer).empty();
}

void QueueRegistry::Forget(const QueueId& queue) {
  base::MutexLock lock(&mu_);
  queues_.erase(queue);
  made_.erase(queue);
}

// Copies of the pointers are made under the lock alone, so nobody gets one meanwhile.
void QueueRegistry::ForgetIdleLocked() {
  if (std::max(queues_.size(), made_.size()) < look_at_) return;
  absl::erase_if(queues_, [](const auto& known) {
    return known.second.use_count() == 1 && known.second->IsForgettable();
  });
  const auto is_forgotten = [this](const QueueId& queue)
                                ABSL_NO_THREAD_SAFETY_ANALYSIS { return !queues_.contains(queue); };
  absl::erase_if(made_, is_forgotten);
  look_at_ = std::max(max_idle_, 2 * queues_.size());
}

size_t QueueRegistry::remembered() {
  base::MutexLock lock(&mu_);
  return std::max(queues_.size(), made_.size());
}

std::optional<queue::Metadata> QueueRegistry::IfMade(const QueueId& queue) {
  {
    base::MutexLock lock(&mu_);
    if (!made_.contains(queue)) return std::nullopt;
  }
  absl::StatusOr<queue::Metadata> there = ReadMetadata(queue);
  if (!there.ok() || !RefreshLease(queue).ok()) return std::nullopt;
  return *std::move(there);
}

absl::Status QueueRegistry::RefreshLease(const QueueId& queue) {
  MUSTER_ASSIGN_OR_RETURN(const nats::ConsumerState consumer,
                          jetstream_->GetConsumer(StreamOf(queue), kConsumer));
  FollowLease(queue, consumer.ack_wait);
  return absl::OkStatus();
}

void QueueRegistry::FollowLease(const QueueId& queue, absl::Duration lease) {
  std::shared_ptr<StreamQueue> known;
  {
    base::MutexLock lock(&mu_);
    const auto found = queues_.find(queue);
    if (found == queues_.end()) return;
    known = found->second;
  }
  known->FollowLease(lease);
}

absl::Status QueueRegistry::EnsureConsumer(const QueueId& queue, const queue::Metadata& metadata) {
  const absl::Duration lease = LeaseBy(metadata);
  MUSTER_RETURN_IF_ERROR(jetstream_->EnsureConsumer(StreamOf(queue), ConsumerSettings(lease)));
  FollowLease(queue, lease);
  return absl::OkStatus();
}

absl::Status QueueRegistry::Create(const QueueId& queue, const queue::Metadata& metadata) {
  MUSTER_RETURN_IF_ERROR(queue::ValidateQueueId(queue));
  MUSTER_RETURN_IF_ERROR(queue::ValidateMetadata(metadata));
  std::optional<queue::Metadata> there = IfMade(queue);
  if (!there.has_value()) {
    MUSTER_ASSIGN_OR_RETURN(there, Make(queue, metadata));
    base::MutexLock lock(&mu_);
    ForgetIdleLocked();
    made_.insert(queue);
  }
  if (*there == metadata) return absl::OkStatus();
  return absl::AlreadyExistsError(
      absl::StrCat("queue '", queue.ToString(), "' is there with other metadata"));
}

absl::StatusOr<queue::Metadata> QueueRegistry::Make(const QueueId& queue,
                                                    const queue::Metadata& metadata) {
  for (int tries = 1;; ++tries) {
    absl::StatusOr<queue::Metadata> made = MakeOnce(queue, metadata);
    if (!absl::IsNotFound(made.status())) return made;
    if (tries == kMakeTries) {
      return absl::UnavailableError(
          absl::StrCat("queue '", queue.ToString(),
                       "': others delete it all the while: ", made.status().message()));
    }
  }
}

absl::StatusOr<queue::Metadata> QueueRegistry::MakeOnce(const QueueId& queue,
                                                        const queue::Metadata& metadata) {
  MUSTER_RETURN_IF_ERROR(jetstream_->EnsureStream(AsideStreamSettings(queue, options_->settings)));
  queue::Metadata there = metadata;
  uint64_t replaced = 0;
  for (;;) {
    const absl::Status written = nats::WriteOnceHeard(
        [&] { return WriteMetadata(queue, there, replaced); }, options_->maker_grace);
    if (written.ok()) break;
    if (nats::ErrorCodeOf(written) != nats::kWrongLastSequence) return written;
    MUSTER_ASSIGN_OR_RETURN(
        const nats::StoredMessage stored,
        jetstream_->LastMessage(AsideStreamOf(queue), MetadataSubjectOf(queue)));
    MUSTER_ASSIGN_OR_RETURN(there, DecodeMetadata(queue, stored.data));
    replaced = stored.sequence;
    MUSTER_ASSIGN_OR_RETURN(const bool made, AwaitConsumer(queue));
    if (made) break;
  }
  MUSTER_RETURN_IF_ERROR(jetstream_->EnsureStream(StreamSettings(queue, options_->settings)));
  MUSTER_RETURN_IF_ERROR(EnsureConsumer(queue, there));
  return there;
}

absl::Status QueueRegistry::WriteMetadata(const QueueId& queue, const queue::Metadata& metadata,
                                          uint64_t replaced) {
  const std::string text = EncodeMetadata(metadata);
  const std::string expected = absl::StrCat(replaced);
  return jetstream_
      ->Publish({.subject = MetadataSubjectOf(queue),
                 .headers = {{"Nats-Expected-Last-Subject-Sequence", expected}},
                 .data = text})
      .status();
}

absl::StatusOr<bool> QueueRegistry::AwaitConsumer(const QueueId& queue) {
  base::Clock* const clock = base::RealClock();  // the server's time is real
  const absl::Duration deadline = clock->Monotonic() + options_->maker_grace;
  for (absl::Duration wait = kFirstLook;; wait *= 2) {
    const absl::Status consumer = jetstream_->GetConsumer(StreamOf(queue), kConsumer).status();
    if (!absl::IsNotFound(consumer)) {
      MUSTER_RETURN_IF_ERROR(consumer);
      return true;
    }
    // Without metadata the queue is being deleted, and nobody makes it.
    MUSTER_RETURN_IF_ERROR(
        jetstream_->LastMessage(AsideStreamOf(queue), MetadataSubjectOf(queue)).status());
    if (clock->Monotonic() >= deadline) return false;
    base::SleepUnlessStopped(clock, wait, {});
  }
}

// Every step runs even if the earlier ones found nothing to delete: a previous call may have ended
// between two steps.
absl::Status QueueRegistry::Delete(const QueueId& queue) {
  MUSTER_RETURN_IF_ERROR(queue::ValidateQueueId(queue));
  const absl::Status messages = jetstream_->DeleteStream(StreamOf(queue));
  if (!messages.ok() && !absl::IsNotFound(messages)) return messages;
  Forget(queue);
  MUSTER_RETURN_IF_ERROR(notes_.attempts->Forget(queue));
  MUSTER_RETURN_IF_ERROR(notes_.held->Forget(queue));
  const absl::Status aside = jetstream_->DeleteStream(AsideStreamOf(queue));
  if (absl::IsNotFound(messages) && absl::IsNotFound(aside)) return NoQueue(queue);
  return absl::IsNotFound(aside) ? absl::OkStatus() : aside;
}

absl::StatusOr<std::vector<queue::QueueInfo>> QueueRegistry::List(
    const queue::ListQueuesRequest& request) {
  MUSTER_RETURN_IF_ERROR(queue::ValidateListQueues(request));
  MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> streams,
                          jetstream_->StreamNames(SubjectOf({request.account, "*"})));
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

absl::StatusOr<queue::Metadata> QueueRegistry::ReadMetadata(const QueueId& queue) {
  const auto stored = jetstream_->LastMessage(AsideStreamOf(queue), MetadataSubjectOf(queue));
  if (absl::IsNotFound(stored.status())) return NoQueue(queue);
  MUSTER_RETURN_IF_ERROR(stored.status());
  return DecodeMetadata(queue, stored->data);
}

absl::StatusOr<queue::Metadata> QueueRegistry::GetMetadata(const QueueId& queue) {
  MUSTER_RETURN_IF_ERROR(Find(queue).status());
  if (const absl::Status looked = RefreshLease(queue); !looked.ok()) {
    if (!absl::IsNotFound(looked)) return looked;
    Forget(queue);
    return NoQueue(queue);
  }
  return ReadMetadata(queue);
}

absl::Status QueueRegistry::SetMetadata(const QueueId& queue, const queue::Metadata& metadata) {
  MUSTER_RETURN_IF_ERROR(queue::ValidateMetadata(metadata));
  MUSTER_RETURN_IF_ERROR(Find(queue).status());
  const std::string text = EncodeMetadata(metadata);
  MUSTER_RETURN_IF_ERROR(
      jetstream_->Publish({.subject = MetadataSubjectOf(queue), .data = text}).status());
  const absl::Status follows = EnsureConsumer(queue, metadata);
  if (follows.ok()) return follows;
  // The next CreateQueue in this process then brings the consumer up to date.
  base::MutexLock lock(&mu_);
  made_.erase(queue);
  return follows;
}

}  // namespace muster::queue::jetstream
