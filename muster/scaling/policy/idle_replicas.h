// SPDX-License-Identifier: Apache-2.0

// IdleReplicas: which replicas are idle, and for how long to keep them. Combines IdleHold and
// HoldTuner.
#pragma once

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "muster/scaling/policy/hold_tuner.h"
#include "muster/scaling/policy/idle_hold.h"
#include "muster/scaling/policy/policy.h"

namespace muster::scaling::policy {

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
