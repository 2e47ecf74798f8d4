// SPDX-License-Identifier: Apache-2.0

// HoldTuner: learns how long it pays to keep an idle replica. Keeping all of them for as long as a
// start costs (β·L) never pays more than twice what perfect foresight would. But where idle
// replicas are never missed, because work is rare or patient, each cold start would be paid twice.
#pragma once

#include <array>
#include <deque>

#include "absl/time/time.h"

namespace muster::scaling::policy {

// Not thread-safe. Weighs each finished idle time once, under several holds: the cost of keeping
// the replica, and whether the replica would have had to start again.
class HoldTuner {
 public:
  HoldTuner();

  // The hold that would have been cheapest recently; at most `longest`, and at least two looks.
  absl::Duration Hold(absl::Duration longest) const;

  // A replica that was idle from `since` has work again. `needed`: without it, another replica
  // would have had to start.
  void Reused(absl::Time now, absl::Time since, bool needed, absl::Duration longest);

  // A replica, idle from `since`, was let go. Later calls show whether it was missed.
  void LetGo(absl::Time since);

  // `replicas` start, so as many of those let go last were missed.
  void Started(absl::Time now, int replicas, absl::Duration longest);

  // Counts the replicas that were let go long ago as not missed.
  void See(absl::Time now, absl::Duration longest);

  // Forgets the replicas that were let go. Call it when time went backwards.
  void StepBack() { let_go_.clear(); }

 private:
  // The costs so far, in cold starts, of holds of 0, 1/8 … 8/8 of the longest.
  static constexpr int kSteps = 8;

  // `idle`: the idle time as a share of the longest hold. `missed`: a replica let go earlier would
  // have had to start again.
  void Weigh(double idle, bool missed);

  std::array<double, kSteps + 1> cost_ = {};
  std::deque<absl::Time> let_go_;  // since when each was idle; oldest first
};

}  // namespace muster::scaling::policy
