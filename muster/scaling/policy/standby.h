// SPDX-License-Identifier: Apache-2.0

// Standby: which replicas of a fleet are parked, and how a policy decides about such a fleet. A
// parked replica is a ready and idle one beyond what the work needs; it listens as all others do.
#pragma once

#include "muster/scaling/policy/policy.h"

namespace muster::scaling::policy {

// Counts the longest idle ones of the ready replicas as parked, up to `standby` of them. If too few
// are idle, the last of the starting ones fill the standby, and do not count as starting: otherwise
// a policy would count on them for work, and order their replacement once they park. `fleet` has
// its times in order, and none parked.
void Park(int standby, Fleet* fleet);

// Lets `policy` decide about `seen`, whose fleet has none parked yet. `standby`, which the decision
// before asked for, becomes what this one does. The parked replicas depend on the standby that the
// policy wants, and its answer depends on them: a second round settles it, because a policy answers
// the same at the same instant.
Decision DecideWithStandby(const Observation& seen, Policy* policy, int* standby);

}  // namespace muster::scaling::policy
