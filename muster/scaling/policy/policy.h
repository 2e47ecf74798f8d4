// Policy: the seam between what is seen of a target and what shall become of it. The same object
// decides in the service, in the simulator and in tests.
#pragma once

#include "muster/scaling/policy/decision.h"
#include "muster/scaling/policy/observation.h"

namespace muster::scaling::policy {

// Pure: no I/O, no clock of its own, no randomness that was not seeded by its maker. Not
// thread-safe. Time never goes backwards between calls; callers see to that.
class Policy {
 public:
  virtual ~Policy() = default;

  // Work was put. A policy that only polls does not care.
  virtual void Announce(const Announcement& announcement) = 0;

  // Called after announcements, and each second. Idempotent at a fixed point: the same observation
  // again, with what was decided carried out, yields the same decision.
  virtual Decision Decide(const Observation& observation) = 0;
};

}  // namespace muster::scaling::policy
