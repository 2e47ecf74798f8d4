// SPDX-License-Identifier: Apache-2.0

// Settled: what the operations share whose caller has to hold the message, by its pop receipt.
#pragma once

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/retry.h"
#include "services/queue-gateway/operations/call.h"
#include "services/queue-gateway/protocol/error.h"

namespace muster::queue_gateway::operations {

inline constexpr char kReceipt[] = "popreceipt";

// While another call has the message, a get that began before, say, the engine asks to try again.
// That is over when the call is: a sync of the disk at most. In all, a quarter of a second.
inline constexpr int kSettleTries = 9;
inline constexpr absl::Duration kFirstSettlePause = absl::Milliseconds(1);
// An engine that cannot be reached says so after seconds, and is not asked again.
inline constexpr absl::Duration kQuickAnswer = absl::Milliseconds(100);

// What `settle` answers for one message, once no other call has it.
template <typename Settle>
auto Settled(const Settle& settle, base::Clock* clock) {
  for (int tries = 1;; ++tries) {
    const absl::Duration began = clock->Monotonic();
    auto results = settle();
    if (!results.ok() || !absl::IsUnavailable(base::StatusOf(results->front())) ||
        tries == kSettleTries || clock->Monotonic() - began > kQuickAnswer) {
      return results;
    }
    base::SleepUnlessStopped(
        clock, base::ExponentialBackoff(tries, kFirstSettlePause, absl::InfiniteDuration()), {});
  }
}

// The receipt is not that of the message. A caller that names no queue, or no message, learns that
// first; an engine that cannot look a message up by its id does not tell.
protocol::Error NoSuchReceipt(const Call& call, const Stores& stores);

// Of one message: NotFound is the message's here. A receipt of another queue, or of one that was
// deleted and made again, points at a place where another message may lie.
protocol::Error FromSettle(const absl::Status& status, const Call& call, const Stores& stores);

}  // namespace muster::queue_gateway::operations
