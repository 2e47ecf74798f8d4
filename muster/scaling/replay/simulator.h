// SPDX-License-Identifier: Apache-2.0

// Simulate: runs one policy on one trace, on a simulated clock.
#pragma once

#include "muster/scaling/policy/policy.h"
#include "muster/scaling/replay/metrics.h"
#include "muster/scaling/replay/options.h"
#include "muster/scaling/replay/trace.h"

namespace muster::scaling::replay {

// Each second: new items are announced, the policy decides, and the decision is carried out. Costs
// count until the latest of the trace's end, the end of its last item and the policy's last action;
// replicas kept longer (by a fixed number, for example) cost nothing more. Items that still wait
// kPatienceSeconds after the trace count as violations.
//
// The same trace, options and policy yield the same metrics on every machine. `sink` may be empty.
Metrics Simulate(const Trace& trace, const SimOptions& options, scaling::policy::Policy* policy,
                 const SeriesSink& sink);

}  // namespace muster::scaling::replay
