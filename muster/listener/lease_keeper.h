// LeaseRenewer: extends the leases of messages that are still being worked on, from a thread of its
// own that no handler can starve (D5).
#pragma once

#include <functional>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/listener/counters.h"
#include "muster/listener/lease_table.h"
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

  // Ends the thread and waits for it; leases that are still there run out. Twice is fine.
  void Stop();

 private:
  using Renewals = std::vector<LeaseTable::Renewal>;

  void Run();
  void Renew(int partition, const Renewals& renewals);
  void Note(Lease& lease, absl::StatusOr<queue::UpdateResult> result, absl::Duration asked_at);

  const LeaseRenewerOptions options_;
  queue::QueueStore* const store_;  // not owned
  LeaseTable* const leases_;        // not owned
  CounterSet* const counters_;      // not owned
  base::Clock* const clock_;        // not owned

  base::Mutex join_mu_;
  std::thread thread_ ABSL_GUARDED_BY(join_mu_);  // last: it uses all of the above
};

}  // namespace muster::listener
