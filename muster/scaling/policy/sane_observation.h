// What was observed, made fit for arithmetic.
#pragma once

#include "muster/scaling/policy/observation.h"

namespace muster::scaling::policy {

// Negative, NaN and infinite numbers become 0, a maximum below its minimum becomes the minimum.
// Replicas that are late in starting are expected to be late by as long again. Starting times
// ascend, and none lies before now.
Observation Sane(const Observation& raw);

}  // namespace muster::scaling::policy
