// SPDX-License-Identifier: Apache-2.0

// QueueDepths: what lies in the queues of a gateway, read from its store at each scrape.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/queue/queue_store.h"
#include "muster/telemetry/registry.h"
#include "services/queue-gateway/auth/accounts.h"
#include "services/queue-gateway/serving_state.h"

namespace muster::queue_gateway {

// A scrape asks for the statistics of each queue, one after the other; those beyond
// telemetry::kMaxValues are shown together. When this time is over it leaves out the rest: the
// scraper waits some seconds at most.
inline constexpr absl::Duration kDepthReadTime = absl::Seconds(2);
inline constexpr int kQueuesAtATime = 500;  // of a list

// Thread-safe.
class QueueDepths {
 public:
  // Nothing is owned; all of it outlives the depths. Nothing is read while `state` is not ready.
  // `registry` may be null: nothing is ever read.
  QueueDepths(const auth::AccountSource* accounts, queue::QueueStore* queues,
              const ServingState* state, base::Clock* clock, telemetry::Registry* registry);

 private:
  absl::Status Read(telemetry::Samples* samples) const;
  absl::Status ReadAccount(const std::string& account, absl::Duration deadline,
                           telemetry::Samples* samples) const;

  const auth::AccountSource* const accounts_;          // not owned
  queue::QueueStore* const queues_;                    // not owned
  const ServingState* const state_;                    // not owned
  base::Clock* const clock_;                           // not owned
  const std::unique_ptr<telemetry::Reading> reading_;  // last: it uses all of the above
};

}  // namespace muster::queue_gateway
