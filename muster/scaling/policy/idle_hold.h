// IdleHold: how many idle replicas may go. One that is let go too early costs a cold start when it
// is needed again, so it stays for as long as that start would cost (β·L); then it has cost at most
// twice what the best foresight would have paid.
#pragma once

#include <deque>

#include "absl/time/time.h"
#include "muster/scaling/policy/observation.h"

namespace muster::scaling::policy {

// Not thread-safe. Sees the fleet at each look, so that it knows how many were busy at once: queues
// spread work over all replicas, so that none of them is idle for long even where half would do.
class IdleHold {
 public:
  void See(absl::Time now, const Fleet& fleet, absl::Duration hold);

  // Of the ready replicas, as of the last look.
  int Removable() const { return removable_; }

  // Forgets what it saw: time went backwards.
  void Reset();

 private:
  struct Look {
    absl::Time at;
    int busy;
  };

  // Since when, and how many replicas were busy at once; descending in `busy`: a look that a later
  // one with as many busy follows cannot be the most of any window that holds both.
  std::deque<Look> most_busy_;
  absl::Time grown_at_ = absl::InfinitePast();  // when there was a replica more, last
  absl::Time seen_at_ = absl::InfinitePast();
  int ready_ = 0;
  int removable_ = 0;
};

}  // namespace muster::scaling::policy
