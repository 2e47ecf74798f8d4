// CompletionEstimate: what the replicas have probably done since the queues were last read.
// Statistics can be half a minute old; without this, work that is long done would seem to near its
// deadline.
#pragma once

#include <deque>

#include "absl/time/time.h"

namespace muster::scaling::policy {

// Not thread-safe. Bounded: looks back for kEstimateHorizon.
class CompletionEstimate {
 public:
  // From `now` on, until the next call, this much is done while there is work.
  void See(absl::Time now, double items_per_second);

  // Items done from `since` until the last See.
  double DoneSince(absl::Time since) const;

  // Forgets all: time went backwards.
  void Reset() { looks_.clear(); }

 private:
  struct Look {
    absl::Time at;
    double done;  // until `at`, ever
    double items_per_second;
  };

  std::deque<Look> looks_;
};

}  // namespace muster::scaling::policy
