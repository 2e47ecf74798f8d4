// SPDX-License-Identifier: Apache-2.0

// IdleReplicas: which replicas are idle, and for how long to keep them.
//
// IdleHold: how many idle replicas may go. A replica that goes too early costs a cold start when it
// is needed again, so it stays for as long as that start would cost (β·L). Then it costs at most
// twice what perfect foresight would have paid.
#pragma once

#include <array>
#include <deque>

#include "absl/functional/function_ref.h"
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

// HoldTuner: learns how long it pays to keep an idle replica. Keeping all of them for as long as a
// start costs (β·L) never pays more than twice what perfect foresight would. But where idle
// replicas are never missed, because work is rare or patient, each cold start would be paid twice.

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

// IdleReplicas: combines IdleHold and HoldTuner.

// Not thread-safe.
class IdleReplicas {
 public:
  // Idle replicas stay for at most the time of this many cold starts.
  explicit IdleReplicas(double cold_starts) : cold_starts_(cold_starts) {}

  // Call it first at each look.
  void See(const Observation& observation);

  // Time steps back to `now`.
  void StepBack(absl::Time now);

  // How many ready replicas may go, as of the last look.
  int Removable() const { return hold_.Removable(); }

  // There is work for the idle replicas. `missed_without(n)` returns how many more replicas would
  // have to start without n of the ready ones.
  void WorkCame(const Fleet& fleet, absl::FunctionRef<int(int)> missed_without);

  // The policy has decided that `replicas` shall be committed from now on.
  void Decided(const Fleet& fleet, int replicas);

 private:
  const double cold_starts_;
  IdleHold hold_;
  HoldTuner tuner_;
  absl::Duration longest_ = absl::ZeroDuration();
  absl::Duration chosen_ = absl::ZeroDuration();
  absl::Time now_ = absl::InfinitePast();
  absl::Time weighed_ =
      absl::InfinitePast();  // idle times that began until then were weighed already
};

}  // namespace muster::scaling::policy
