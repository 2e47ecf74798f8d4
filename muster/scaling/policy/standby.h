// The standby pool: warm replicas that only have to be let go, for promises that are shorter than
// a cold start.
#pragma once

#include "muster/scaling/policy/deadline_profile.h"

namespace muster::scaling::policy {

// How many parked replicas meet the promise of a batch of `items` (the 99th percentile of what
// comes) that finds nobody at work. 0 where a cold start is fast enough, or no number would do.
int StandbySize(double items, const Supply& supply, const Promise& promise);

}  // namespace muster::scaling::policy
