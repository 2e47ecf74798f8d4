// SPDX-License-Identifier: Apache-2.0

// WakingStore: a queue store that wakes the gets which wait for messages, after each call that may
// have brought one.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "muster/queue/store_decorators.h"
#include "services/queue-gateway/operations/long_polls.h"

namespace muster::queue_gateway::operations {

// Thread-safe.
class WakingStore final : public queue::InterceptedStore {
 public:
  // Neither pointer is owned.
  WakingStore(queue::QueueStore* behind, LongPolls* polls)
      : InterceptedStore(behind), queues_(behind), polls_(polls) {}

  // Each request to a queue reads them first, and that brings no message.
  absl::StatusOr<queue::Metadata> GetMetadata(const queue::QueueId& queue) override {
    return queues_->GetMetadata(queue);
  }

  // The queue that the messages go to is woken, too.
  absl::StatusOr<std::vector<absl::Status>> Move(
      const queue::QueueId& from, const queue::QueueId& to,
      absl::Span<const queue::MoveRequest> requests) override {
    auto moved = InterceptedStore::Move(from, to, requests);
    polls_->Wake(to);
    return moved;
  }

  // Moved messages go back to queues that only the engine knows. Redrives are rare.
  absl::StatusOr<int64_t> Redrive(const queue::QueueId& queue,
                                  absl::Span<const std::string> message_ids,
                                  int64_t max_messages) override {
    auto redriven = InterceptedStore::Redrive(queue, message_ids, max_messages);
    polls_->WakeAll();
    return redriven;
  }

 protected:
  // A receive, too: the end of its lease may be what comes next.
  void After(queue::Verb verb, const queue::QueueId& queue, bool useful) override {
    if (verb == queue::Verb::kPeek || verb == queue::Verb::kStats) return;
    if (verb == queue::Verb::kReceive && !useful) return;
    if (verb == queue::Verb::kAdministration && queue.name.empty()) return;
    polls_->Wake(queue);
  }

 private:
  queue::QueueStore* const queues_;  // not owned
  LongPolls* const polls_;           // not owned
};

}  // namespace muster::queue_gateway::operations
