// SPDX-License-Identifier: Apache-2.0

// CompletingStore: a queue store in front of an engine that lacks abilities which the API needs. It
// makes up for those that can be made up for, and keeps nothing: what one process receives, another
// one settles.
//
//   a lease as long as asked   where the queue sets how long a lease lasts: a message is given back
//                              with that delay right after its receive. Until the delay is over the
//                              engine does not deliver it, and its receipt settles it: a lease
//   the text, once more        where the engine cannot replace a body: clients send the text that
//                              they have with each update. Receipts carry a mark of it, so that the
//                              same text is told from another one, which is Unimplemented
//
// An engine that has these abilities needs no such store.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "muster/base/clock.h"
#include "muster/queue/queue_store.h"
#include "muster/queue/store_decorators.h"

namespace muster::queue_gateway::operations {

// Thread-safe, if `behind` is.
class CompletingStore final : public queue::InterceptedStore {
 public:
  // Neither pointer is owned; both outlive the store.
  CompletingStore(queue::QueueStore* behind, const base::Clock* clock);

  // Those of the engine, with per_receive_visibility.
  const queue::Traits& traits() const override { return traits_; }

  absl::StatusOr<std::vector<queue::PutResult>> Put(
      const queue::QueueId& queue, absl::Span<const queue::NewMessage> messages) override;
  // Messages whose lease cannot be made as long as asked are left out; they come again.
  absl::StatusOr<std::vector<queue::Message>> Receive(
      const queue::QueueId& queue, const queue::ReceiveOptions& options) override;
  // The lease is that of the queue.
  absl::StatusOr<std::unique_ptr<Wait>> AwaitMessage(const queue::QueueId& queue,
                                                     absl::Duration patience,
                                                     TakeMessage take) override;
  absl::StatusOr<std::vector<absl::StatusOr<int>>> BeginAttempt(
      const queue::QueueId& queue, absl::Span<const queue::Receipt> receipts) override;
  absl::StatusOr<std::vector<absl::StatusOr<queue::UpdateResult>>> Update(
      const queue::QueueId& queue, absl::Span<const queue::UpdateRequest> requests) override;
  absl::StatusOr<std::vector<absl::Status>> Delete(
      const queue::QueueId& queue, absl::Span<const queue::Receipt> receipts) override;
  absl::StatusOr<std::vector<absl::Status>> DeadLetter(
      const queue::QueueId& queue, absl::Span<const queue::DeadLetterRequest> requests) override;

 private:
  const base::Clock* const clock_;  // not owned
  queue::Traits traits_;
};

}  // namespace muster::queue_gateway::operations
