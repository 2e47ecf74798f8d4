// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/operations/take_messages.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/log.h"
#include "muster/base/status.h"
#include "muster/base/text.h"
#include "muster/queue/limits.h"

namespace muster::queue_gateway::operations {
namespace {

// Receives in one call that find nothing but poison. A caller that meets more gets an empty list,
// and asks again. Its client may take that for an empty queue: so many that it is rare, and few
// enough that they take seconds.
constexpr int kMaxRounds = 1024;

queue::MoveRequest ToPoison(const queue::QueueId& queue, const QueueSettings& settings,
                            const queue::Message& message) {
  queue::Cause cause;
  cause.attempts = message.dequeue_count - 1;  // this receive is not the client's
  cause.reason = absl::StrCat("received ", cause.attempts, " times from '", queue.name,
                              "' and never deleted; muster-maxdequeue is ", settings.max_dequeues);
  cause.holder = message.last_holder;
  queue::MoveRequest request;
  request.receipt = message.receipt;
  request.cause = std::move(cause);
  return request;
}

absl::Status MoveToPoison(const queue::QueueId& queue, const QueueSettings& settings,
                          const std::vector<queue::MoveRequest>& requests, const Stores& stores) {
  const queue::QueueId poison{queue.account, settings.poison_queue};
  auto moved = stores.queues->Move(queue, poison, requests);
  if (absl::IsNotFound(moved.status())) {
    // The queue itself may be gone meanwhile, and then needs no poison queue.
    MUSTER_RETURN_IF_ERROR(stores.queues->GetMetadata(queue).status());
    const absl::Status made = stores.queues->CreateQueue(poison, {});
    // Another call may have made it, with metadata.
    if (!made.ok() && !absl::IsAlreadyExists(made)) return made;
    moved = stores.queues->Move(queue, poison, requests);
  }
  // A single message that is refused was taken meanwhile, as its lease was very short.
  return moved.status();
}

}  // namespace

std::string HolderOf(const Call& call) {
  const auto header = [&](absl::string_view name) {
    return http::HeaderOf(call.http.headers, name).value_or("");
  };
  std::string text = call.http.peer_ip;
  if (!header("x-ms-client-request-id").empty()) {
    absl::StrAppend(&text, " request ", header("x-ms-client-request-id"));
  }
  if (!header("user-agent").empty()) absl::StrAppend(&text, " ", header("user-agent"));
  std::string holder;
  for (absl::string_view rest = text; !rest.empty();) {
    const size_t size = base::Utf8Prefix(rest);
    if (holder.size() + std::max<size_t>(size, 1) > queue::kMaxHolderBytes) break;
    holder += size == 0 ? "?" : std::string(rest.substr(0, size));
    rest.remove_prefix(std::max<size_t>(size, 1));
  }
  return holder;
}

absl::StatusOr<std::vector<queue::Message>> TakeMessages(const Get& get, const Stores& stores) {
  const queue::QueueId& queue = get.queue;
  const QueueSettings& settings = get.settings;
  if (settings.max_dequeues == 0) return stores.queues->Receive(queue, get.options);
  queue::ReceiveOptions options = get.options;
  options.holder = get.holder;
  for (int round = 0; round < kMaxRounds; ++round) {
    MUSTER_ASSIGN_OR_RETURN(std::vector<queue::Message> all,
                            stores.queues->Receive(queue, options));
    std::vector<queue::Message> messages;
    std::vector<queue::MoveRequest> poison;
    for (queue::Message& message : all) {
      if (message.dequeue_count > settings.max_dequeues) {
        poison.push_back(ToPoison(queue, settings, message));
      } else {
        messages.push_back(std::move(message));
      }
    }
    if (poison.empty()) return messages;
    const absl::Status moved = MoveToPoison(queue, settings, poison, stores);
    base::LogUnlessOk(base::kError, "poison stays in its queue", moved,
                      {{"queue", queue.ToString()}});
    if (!messages.empty()) return messages;
    MUSTER_RETURN_IF_ERROR(moved);
  }
  return std::vector<queue::Message>();
}

}  // namespace muster::queue_gateway::operations
