// A sleep that a stop ends at once (D5).
#pragma once

#include <stop_token>

#include "absl/time/time.h"
#include "muster/base/clock.h"

namespace muster::base {

// Sleeps for `duration` of `clock`'s monotonic time. True: slept to the end. False: `stop` was
// requested, before or meanwhile. A duration of zero or less does not sleep.
bool SleepUnlessStopped(Clock* clock, absl::Duration duration, const std::stop_token& stop);

}  // namespace muster::base
