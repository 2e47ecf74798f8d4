// SPDX-License-Identifier: Apache-2.0

// MeasuredQueues: a queue store that counts the calls, messages, redeliveries and dead letters of
// each queue, and times what sends, receives and settles messages.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/queue/queue_store.h"
#include "muster/queue/store_decorators.h"
#include "muster/telemetry/registry.h"

namespace muster::host {

// Thread-safe.
class MeasuredQueues final : public queue::InterceptedStore {
 public:
  // Owns `behind`. `metrics` and `clock` are not owned and outlive it.
  MeasuredQueues(std::unique_ptr<queue::QueueStore> behind, telemetry::Registry* metrics,
                 base::Clock* clock);

  absl::StatusOr<std::vector<queue::PutResult>> Put(
      const queue::QueueId& queue, absl::Span<const queue::NewMessage> messages) override;
  // Each queue is told the time of all.
  std::vector<absl::StatusOr<std::vector<queue::PutResult>>> PutEach(
      absl::Span<const queue::ForQueue<queue::NewMessage>> puts) override;
  absl::StatusOr<std::vector<queue::Message>> Receive(
      const queue::QueueId& queue, const queue::ReceiveOptions& options) override;
  absl::StatusOr<std::unique_ptr<Wait>> AwaitMessage(const queue::QueueId& queue,
                                                     absl::Duration patience,
                                                     TakeMessage take) override;
  absl::StatusOr<std::vector<absl::Status>> Delete(
      const queue::QueueId& queue, absl::Span<const queue::Receipt> receipts) override;
  std::vector<absl::StatusOr<std::vector<absl::Status>>> DeleteEach(
      absl::Span<const queue::ForQueue<queue::Receipt>> deletes) override;
  absl::StatusOr<std::vector<absl::Status>> DeadLetter(
      const queue::QueueId& queue, absl::Span<const queue::DeadLetterRequest> requests) override;

 protected:
  void After(queue::Verb verb, const queue::QueueId& queue, bool useful) override;

 private:
  void CountRedelivery(const queue::QueueId& queue, const queue::Message& message) const;
  // The counters of trouble are there before their first event, so that increase() sees it.
  void ShowZeroes(const queue::QueueId& queue) ABSL_LOCKS_EXCLUDED(mu_);
  void CountConsumed(const queue::QueueId& queue, size_t messages) const;
  // Makes the call, and records how long it took.
  template <typename Call>
  auto Time(absl::string_view operation, const queue::QueueId& queue, Call call) const
      -> decltype(call());
  void Observe(absl::string_view operation, const queue::QueueId& queue, const absl::Status& status,
               absl::Duration took) const;
  void CountSent(const queue::QueueId& queue, size_t messages, const absl::Status& status) const;

  const std::unique_ptr<queue::QueueStore> owned_;
  const telemetry::Counters<3> calls_;
  const telemetry::Counters<2> redeliveries_;
  const telemetry::Counters<2> dead_letters_;
  const telemetry::Histograms<4> operations_;
  const telemetry::Counters<4> sent_;
  const telemetry::Counters<4> consumed_;
  base::Clock* const clock_;  // not owned

  base::Mutex mu_;
  std::unordered_set<std::string> shown_ ABSL_GUARDED_BY(mu_);  // by label
};

}  // namespace muster::host
