// SPDX-License-Identifier: Apache-2.0
#include "muster/scaling/policy/standby.h"

#include <algorithm>

namespace muster::scaling::policy {

void Park(int standby, Fleet* fleet) {
  fleet->parked = std::min(static_cast<int>(fleet->idle_since.size()), standby);
  fleet->ready -= fleet->parked;
  fleet->idle_since.erase(fleet->idle_since.begin(), fleet->idle_since.begin() + fleet->parked);
  const int starting = static_cast<int>(fleet->starting.size());
  fleet->starting.resize(starting - std::min(standby - fleet->parked, starting));
}

Decision DecideWithStandby(const Observation& seen, Policy* policy, int* standby) {
  Decision decision;
  for (int round = 0; round < 2; ++round) {
    Observation parked = seen;
    Park(*standby, &parked.fleet);
    decision = policy->Decide(parked);
    if (decision.standby == *standby) break;
    *standby = decision.standby;
  }
  return decision;
}

}  // namespace muster::scaling::policy
