// IdleHold: how many idle replicas may go. One that is let go too early costs a cold start when it
// is needed again, so it stays for as long as that start would cost (β·L); then it has cost at most
// twice what the best foresight would have paid.
#pragma once

#include <array>
#include <deque>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "muster/scaling/policy/policy.h"

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

// HoldTuner: learns how long it pays to keep an idle replica. Keeping all of them for as long as a
// start costs (β·L) never pays more than twice what foresight would; but where work comes so
// rarely, or so patiently, that idle replicas are never missed, each cold start would be paid
// twice.

// Not thread-safe. It weighs each idle time that ended, once, under several holds: what it would
// have cost to keep the replica, and whether it would have had to start again.
class HoldTuner {
 public:
  HoldTuner();

  // The hold that would have been cheapest lately; at most `longest`, and at least two looks.
  absl::Duration Hold(absl::Duration longest) const;

  // A replica that had idled since `since` has work again. `needed`: without it, another one would
  // have had to start.
  void Reused(absl::Time now, absl::Time since, bool needed, absl::Duration longest);

  // One was let go. Whether it was missed shows later.
  void LetGo(absl::Time since);

  // Some start: those let go last were missed.
  void Started(absl::Time now, int replicas, absl::Duration longest);

  // Those let go long ago were not missed.
  void See(absl::Time now, absl::Duration longest);

  // Time went backwards: forgets whom it let go.
  void StepBack() { let_go_.clear(); }

 private:
  // Holds of 0, 1/8 … 8/8 of the longest, each with what it cost so far, in cold starts.
  static constexpr int kSteps = 8;

  // `idle`: as a share of the longest hold. Missed: let go earlier, it would have had to start.
  void Weigh(double idle, bool missed);

  std::array<double, kSteps + 1> cost_ = {};
  std::deque<absl::Time> let_go_;  // since when each had idled; oldest first
};

// IdleReplicas: which replicas have nothing to do, for how long that is worth its cost, and what
// was learned of it.

// Not thread-safe.
class IdleReplicas {
 public:
  // Idle replicas stay for at most this many cold starts.
  explicit IdleReplicas(double cold_starts) : cold_starts_(cold_starts) {}

  // First at each look.
  void See(const Observation& observation);

  // Time steps back to `now`.
  void StepBack(absl::Time now);

  // How many ready replicas may go, as of the last look.
  int Removable() const { return hold_.Removable(); }

  // There is work for those that idled. `missed_without(n)` tells how many more replicas would have
  // to start if n of the ready ones were not there.
  void WorkCame(const Fleet& fleet, absl::FunctionRef<int(int)> missed_without);

  // So many replicas shall be committed from now on.
  void Decided(const Fleet& fleet, int replicas);

 private:
  const double cold_starts_;
  IdleHold hold_;
  HoldTuner tuner_;
  absl::Duration longest_ = absl::ZeroDuration();
  absl::Duration chosen_ = absl::ZeroDuration();
  absl::Time now_ = absl::InfinitePast();
  absl::Time weighed_ = absl::InfinitePast();  // idle times that began by then were weighed
};

}  // namespace muster::scaling::policy
