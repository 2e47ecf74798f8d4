#include "services/host/measured_queues.h"

#include <algorithm>
#include <string>
#include <utility>

#include "muster/item/queue_names.h"
#include "muster/telemetry/catalogue.h"

namespace muster::host {
namespace {

// Of calls that are about no queue of their own.
constexpr char kAllQueues[] = "all";

std::string LabelOf(const queue::QueueId& queue) {
  return queue.name.empty() ? kAllQueues : item::LogicalName(queue.name);
}

}  // namespace

MeasuredQueues::MeasuredQueues(std::unique_ptr<queue::QueueStore> behind,
                               telemetry::Registry* metrics)
    : queue::InterceptedStore(behind.get()),
      owned_(std::move(behind)),
      calls_(metrics, telemetry::kStorageTransactions),
      redeliveries_(metrics, telemetry::kRedeliveries),
      dead_letters_(metrics, telemetry::kDeadLetters) {}

void MeasuredQueues::After(queue::Verb verb, const queue::QueueId& queue, bool useful) {
  calls_.With({LabelOf(queue), queue::NameOf(verb), useful ? "true" : "false"}).Add();
}

void MeasuredQueues::CountRedelivery(const queue::QueueId& queue,
                                     const queue::Message& message) const {
  if (message.dequeue_count > 1) redeliveries_.With({LabelOf(queue)}).Add();
}

absl::StatusOr<std::vector<queue::Message>> MeasuredQueues::Receive(
    const queue::QueueId& queue, const queue::ReceiveOptions& options) {
  auto messages = InterceptedStore::Receive(queue, options);
  if (!messages.ok()) return messages;
  // Both counters are there before their first event, so that increase() sees it.
  const std::string label = LabelOf(queue);
  redeliveries_.With({label});
  dead_letters_.With({label});
  for (const queue::Message& message : *messages) CountRedelivery(queue, message);
  return messages;
}

absl::StatusOr<std::unique_ptr<queue::QueueStore::Wait>> MeasuredQueues::AwaitMessage(
    const queue::QueueId& queue, absl::Duration patience, TakeMessage take) {
  return InterceptedStore::AwaitMessage(
      queue, patience, [this, queue, take = std::move(take)](absl::StatusOr<queue::Message> came) {
        if (came.ok()) CountRedelivery(queue, *came);
        return take(std::move(came));
      });
}

absl::StatusOr<std::vector<absl::Status>> MeasuredQueues::DeadLetter(
    const queue::QueueId& queue, absl::Span<const queue::DeadLetterRequest> requests) {
  auto statuses = InterceptedStore::DeadLetter(queue, requests);
  if (!statuses.ok()) return statuses;
  const auto moved = std::count_if(statuses->begin(), statuses->end(),
                                   [](const absl::Status& status) { return status.ok(); });
  if (moved > 0) dead_letters_.With({LabelOf(queue)}).Add(static_cast<double>(moved));
  return statuses;
}

}  // namespace muster::host
