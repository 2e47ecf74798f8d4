// DepthGauge: looks at the statistics of a listener's partitions, and remembers what it saw.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "muster/base/mutex.h"
#include "muster/listener/counters.h"
#include "muster/listener/lease_table.h"
#include "muster/queue/queue_store.h"

namespace muster::listener {

// What is ready in all partitions together.
struct Depth {
  int64_t ready = 0;
  bool known = true;  // false: there may be more, which only a Receive can tell
};

// Thread-safe.
class DepthGauge {
 public:
  // What the pointers and `partitions` refer to is not owned. `on_error` hears of partitions that
  // do not answer.
  DepthGauge(const std::vector<queue::QueueId>& partitions, queue::QueueStore* store,
             const LeaseTable* leases, CounterSet* counters,
             std::function<void(const absl::Status&)> on_error);

  // Asks the store now.
  Depth Look();

  // Of each partition what its last answer was; all 0 before the first.
  std::vector<queue::QueueStats> last_seen() const;

 private:
  const std::vector<queue::QueueId>& partitions_;  // not owned
  queue::QueueStore* const store_;                 // not owned
  const LeaseTable* const leases_;                 // not owned
  CounterSet* const counters_;                     // not owned
  const std::function<void(const absl::Status&)> on_error_;

  mutable base::Mutex mu_;
  std::vector<queue::QueueStats> last_seen_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::listener
