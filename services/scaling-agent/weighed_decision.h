// SPDX-License-Identifier: Apache-2.0

// How the agent corrects the answer of a target's policy before it acts on it.
#pragma once

#include <optional>

#include "muster/scaling/policy/policy.h"
#include "muster/scaling/rules/ruled_policy.h"
#include "services/scaling-agent/overrides.h"

namespace muster::scaling_agent {

// Everything that led to a decision, and the decision.
struct Weighed {
  // Its bounds are the rules' bounds.
  scaling::policy::Observation observation;
  scaling::policy::Decision by_policy;  // the policy's own answer
  scaling::rules::RuleTrace trace;
  std::optional<Override> override;
  int waiting = 0;        // replicas that wait for a release
  bool is_blind = false;  // the agent lets go of no replica now, also where the policy would
  scaling::policy::Decision decided;
};

// The next four functions correct a policy's answer. Call them in this order.
//
// Keeps at least `there` replicas, because the agent cannot see all that exist.
void KeepAtLeast(int there, Weighed* weighed);
// Keeps the replicas that wait for a release beside those that work: they do not count as working,
// none is let go of, and no other is started in the place of one, as long as the number that the
// policy wants covers them.
void KeepWaiting(Weighed* weighed);
// Applies an override; nullopt: there is none. Of the rules only `range` limits it.
void Demand(const std::optional<Override>& override, const scaling::rules::Range& range,
            Weighed* weighed);
// Keeps replicas and standby replicas together within `most`, the target's own maximum.
void BoundStandby(int most, Weighed* weighed);

}  // namespace muster::scaling_agent
