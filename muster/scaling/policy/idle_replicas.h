// IdleReplicas: which replicas have nothing to do, for how long that is worth its cost, and what
// was learned of it.
#pragma once

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "muster/scaling/policy/hold_tuner.h"
#include "muster/scaling/policy/idle_hold.h"
#include "muster/scaling/policy/observation.h"

namespace muster::scaling::policy {

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
