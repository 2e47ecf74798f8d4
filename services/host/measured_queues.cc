// SPDX-License-Identifier: Apache-2.0
#include "services/host/measured_queues.h"

#include <array>
#include <optional>
#include <string>
#include <utility>

#include "muster/item/queue_names.h"
#include "muster/telemetry/catalogue.h"

namespace muster::host {
namespace {

// Queues that are known to have their counters. Beyond that number all are shown anew.
constexpr size_t kMaxShown = 10'000;

constexpr std::array kRedeliveryReasons = {"returned", "interrupted"};

// Of calls that are about no queue of their own.
constexpr char kAllQueues[] = "all";

std::string LabelOf(const queue::QueueId& queue) {
  return queue.name.empty() ? kAllQueues : item::LogicalName(queue.name);
}

absl::string_view ReasonOf(const queue::Message& message) {
  return kRedeliveryReasons[message.interrupted ? 1 : 0];
}

absl::string_view ReasonOf(queue::DeadLetterKind kind) {
  switch (kind) {
    case queue::DeadLetterKind::kAttempts:
      return "attempts";
    case queue::DeadLetterKind::kCrash:
      return "crash";
    case queue::DeadLetterKind::kRefused:
      return "refused";
    case queue::DeadLetterKind::kOutput:
      return "output";
    case queue::DeadLetterKind::kResult:
      return "result";
  }
  return "";
}

// The ends that a message of this queue can come to.
std::vector<queue::DeadLetterKind> EndsIn(const queue::QueueId& queue) {
  const std::optional<item::Direction> direction = item::DirectionOf(queue.name);
  if (direction == item::Direction::kOutput) return {queue::DeadLetterKind::kResult};
  if (direction != item::Direction::kInput) return {};
  return {queue::DeadLetterKind::kAttempts, queue::DeadLetterKind::kCrash,
          queue::DeadLetterKind::kRefused, queue::DeadLetterKind::kOutput};
}

// error.type; empty: it is none.
std::string ErrorOf(const absl::Status& status) {
  return status.ok() ? "" : absl::StatusCodeToString(status.code());
}

}  // namespace

MeasuredQueues::MeasuredQueues(std::unique_ptr<queue::QueueStore> behind,
                               telemetry::Registry* metrics, base::Clock* clock)
    : queue::InterceptedStore(behind.get()),
      owned_(std::move(behind)),
      calls_(metrics, telemetry::kStorageTransactions),
      redeliveries_(metrics, telemetry::kRedeliveries),
      dead_letters_(metrics, telemetry::kDeadLetters),
      operations_(metrics, telemetry::kMessagingOperation),
      sent_(metrics, telemetry::kMessagingSent),
      consumed_(metrics, telemetry::kMessagingConsumed),
      clock_(clock) {}

void MeasuredQueues::After(queue::Verb verb, const queue::QueueId& queue, bool useful) {
  calls_.With({LabelOf(queue), queue::NameOf(verb), useful ? "true" : "false"}).Add();
}

void MeasuredQueues::CountRedelivery(const queue::QueueId& queue,
                                     const queue::Message& message) const {
  if (message.dequeue_count > 1) redeliveries_.With({LabelOf(queue), ReasonOf(message)}).Add();
}

void MeasuredQueues::ShowZeroes(const queue::QueueId& queue) {
  const std::string label = LabelOf(queue);
  {
    base::MutexLock lock(&mu_);
    if (shown_.size() >= kMaxShown) shown_.clear();
    if (!shown_.insert(label).second) return;
  }
  for (const char* reason : kRedeliveryReasons) redeliveries_.With({label, reason});
  for (const queue::DeadLetterKind kind : EndsIn(queue)) {
    dead_letters_.With({label, ReasonOf(kind)});
  }
}

void MeasuredQueues::CountConsumed(const queue::QueueId& queue, size_t messages) const {
  consumed_.With({LabelOf(queue), "receive", telemetry::kMessagingSystem, ""})
      .Add(static_cast<double>(messages));
}

template <typename Call>
auto MeasuredQueues::Time(absl::string_view operation, const queue::QueueId& queue, Call call) const
    -> decltype(call()) {
  const absl::Duration begun = clock_->Monotonic();
  auto result = call();
  Observe(operation, queue, result.status(), clock_->Monotonic() - begun);
  return result;
}

void MeasuredQueues::Observe(absl::string_view operation, const queue::QueueId& queue,
                             const absl::Status& status, absl::Duration took) const {
  operations_.With({LabelOf(queue), operation, telemetry::kMessagingSystem, ErrorOf(status)})
      .Observe(took);
}

void MeasuredQueues::CountSent(const queue::QueueId& queue, size_t messages,
                               const absl::Status& status) const {
  sent_.With({LabelOf(queue), "send", telemetry::kMessagingSystem, ErrorOf(status)})
      .Add(static_cast<double>(messages));
}

absl::StatusOr<std::vector<queue::PutResult>> MeasuredQueues::Put(
    const queue::QueueId& queue, absl::Span<const queue::NewMessage> messages) {
  auto results = Time("send", queue, [&] { return InterceptedStore::Put(queue, messages); });
  CountSent(queue, messages.size(), results.status());
  return results;
}

std::vector<absl::StatusOr<std::vector<queue::PutResult>>> MeasuredQueues::PutEach(
    absl::Span<const queue::ForQueue<queue::NewMessage>> puts) {
  if (!traits().joins_queues) return InterceptedStore::PutEach(puts);  // by Put, which measures
  const absl::Duration begun = clock_->Monotonic();
  auto results = InterceptedStore::PutEach(puts);
  const absl::Duration took = clock_->Monotonic() - begun;
  for (size_t i = 0; i < puts.size(); ++i) {
    Observe("send", puts[i].queue, results[i].status(), took);
    CountSent(puts[i].queue, puts[i].items.size(), results[i].status());
  }
  return results;
}

std::vector<absl::StatusOr<std::vector<absl::Status>>> MeasuredQueues::DeleteEach(
    absl::Span<const queue::ForQueue<queue::Receipt>> deletes) {
  if (!traits().joins_queues) return InterceptedStore::DeleteEach(deletes);
  const absl::Duration begun = clock_->Monotonic();
  auto results = InterceptedStore::DeleteEach(deletes);
  const absl::Duration took = clock_->Monotonic() - begun;
  for (size_t i = 0; i < deletes.size(); ++i) {
    Observe("settle", deletes[i].queue, results[i].status(), took);
  }
  return results;
}

absl::StatusOr<std::vector<absl::Status>> MeasuredQueues::Delete(
    const queue::QueueId& queue, absl::Span<const queue::Receipt> receipts) {
  return Time("settle", queue, [&] { return InterceptedStore::Delete(queue, receipts); });
}

absl::StatusOr<std::vector<queue::Message>> MeasuredQueues::Receive(
    const queue::QueueId& queue, const queue::ReceiveOptions& options) {
  auto messages = Time("receive", queue, [&] { return InterceptedStore::Receive(queue, options); });
  if (!messages.ok()) return messages;
  CountConsumed(queue, messages->size());
  ShowZeroes(queue);
  for (const queue::Message& message : *messages) CountRedelivery(queue, message);
  return messages;
}

absl::StatusOr<std::unique_ptr<queue::QueueStore::Wait>> MeasuredQueues::AwaitMessage(
    const queue::QueueId& queue, absl::Duration patience, TakeMessage take) {
  return InterceptedStore::AwaitMessage(
      queue, patience, [this, queue, take = std::move(take)](absl::StatusOr<queue::Message> came) {
        if (came.ok()) {
          CountConsumed(queue, 1);
          CountRedelivery(queue, *came);
        }
        return take(std::move(came));
      });
}

absl::StatusOr<std::vector<absl::Status>> MeasuredQueues::DeadLetter(
    const queue::QueueId& queue, absl::Span<const queue::DeadLetterRequest> requests) {
  auto statuses =
      Time("settle", queue, [&] { return InterceptedStore::DeadLetter(queue, requests); });
  if (!statuses.ok()) return statuses;
  const std::string label = LabelOf(queue);
  for (size_t i = 0; i < statuses->size(); ++i) {
    if ((*statuses)[i].ok()) dead_letters_.With({label, ReasonOf(requests[i].kind)}).Add();
  }
  return statuses;
}

}  // namespace muster::host
