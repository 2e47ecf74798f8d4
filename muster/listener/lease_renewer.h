// SPDX-License-Identifier: Apache-2.0

// LeaseRenewer: extends the leases of messages that are still in work, on a thread of its own that
// no handler can starve.
#pragma once

#include <functional>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/listener/lease_table.h"
#include "muster/listener/metrics.h"
#include "muster/queue/queue_store.h"

namespace muster::listener {

struct LeaseRenewerOptions {
  std::vector<queue::QueueId> partitions;
  std::function<void(const absl::Status&)> on_error;  // called with no lock held
};

// Thread-safe.
class LeaseRenewer {
 public:
  // Starts the thread. `store`, `leases`, `counters` and `clock` are not owned.
  LeaseRenewer(LeaseRenewerOptions options, queue::QueueStore* store, LeaseTable* leases,
               CounterSet* counters, base::Clock* clock);
  ~LeaseRenewer();

  // Ends the thread and waits for it; the remaining leases run out. May be called twice.
  void Stop() ABSL_LOCKS_EXCLUDED(join_mu_);

 private:
  using Renewals = std::vector<LeaseTable::Renewal>;

  void Run() ABSL_LOCKS_EXCLUDED(join_mu_);
  void Renew(int partition, const Renewals& renewals) ABSL_LOCKS_EXCLUDED(join_mu_);
  void Note(Lease& lease, absl::StatusOr<queue::UpdateResult> result, absl::Duration asked_at)
      ABSL_LOCKS_EXCLUDED(join_mu_);

  const LeaseRenewerOptions options_;
  queue::QueueStore* const store_;  // not owned
  LeaseTable* const leases_;        // not owned
  CounterSet* const counters_;      // not owned
  base::Clock* const clock_;        // not owned

  base::Mutex join_mu_;
  std::thread thread_ ABSL_GUARDED_BY(join_mu_);  // last: it uses all of the above
};

}  // namespace muster::listener
