// Simulate: one policy on one trace, on a clock of its own.
#pragma once

#include "muster/scaling/policy/policy.h"
#include "muster/scaling/replay/metrics.h"
#include "muster/scaling/replay/options.h"
#include "muster/scaling/replay/trace.h"

namespace muster::scaling::replay {

// Each second: what came is announced, then the policy decides, then it is carried out. The account
// is closed at the last of: the trace's end, its last item's, the policy's last action; what is
// kept for longer (a fixed number, say) costs nothing any more. A policy that leaves items waiting
// for kPatienceSeconds after the trace has them counted as violations.
//
// The same trace, options and policy yield the same metrics on every machine. `sink` may be empty.
Metrics Simulate(const Trace& trace, const SimOptions& options, scaling::policy::Policy* policy,
                 const SeriesSink& sink);

}  // namespace muster::scaling::replay
