// SPDX-License-Identifier: Apache-2.0

// Explains decisions to people.
#pragma once

#include <string>

#include "absl/time/time.h"
#include "muster/scaling/policy/policy.h"

namespace muster::scaling::policy {

// Sentences that tell the decision, its reason, its outcome, and what would improve the outcome.
//
//   Grow from 2 to 5 replicas. Needs 7, capped at 5: misses 06:00 by 4 min.
//
// Times of day are those of `zone`.
std::string Explain(const Decision& decision, const Observation& observation,
                    absl::TimeZone zone = absl::UTCTimeZone());

// "SLA infeasible: needs N = 57, N_max = 40; earliest finish 84 s late". Empty where it is
// feasible.
std::string ExplainInfeasible(const Decision& decision, const Bounds& bounds);

// "84 s", "4 min", "4 min 10 s", "1 h 5 min", "0.5 s"; "for ever".
std::string ShowDuration(absl::Duration duration);

}  // namespace muster::scaling::policy
