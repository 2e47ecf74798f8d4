// SPDX-License-Identifier: Apache-2.0

// IdleHold: how many idle replicas may go. A replica that goes too early costs a cold start when it
// is needed again, so it stays for as long as that start would cost (β·L). Then it costs at most
// twice what perfect foresight would have paid.
#pragma once

#include <deque>

#include "absl/time/time.h"
#include "muster/scaling/policy/policy.h"

namespace muster::scaling::policy {

// Not thread-safe. Call See at each look, so that the hold knows how many replicas were busy at
// once: queues spread work over all replicas, so none of them is idle for long even where half
// would do.
class IdleHold {
 public:
  void See(absl::Time now, const Fleet& fleet, absl::Duration hold);

  // How many ready replicas may go, as of the last look.
  int Removable() const { return removable_; }

  // Forgets all looks. Call it when time went backwards.
  void Reset();

 private:
  struct Look {
    absl::Time at;
    int busy;
  };

  // Looks with descending `busy`. A look that a later one with at least as many busy replicas
  // follows is dropped, because it cannot be the maximum of a window that holds both.
  std::deque<Look> most_busy_;
  absl::Time grown_at_ = absl::InfinitePast();  // when the number of replicas last grew
  absl::Time seen_at_ = absl::InfinitePast();
  int ready_ = 0;
  int removable_ = 0;
};

}  // namespace muster::scaling::policy
