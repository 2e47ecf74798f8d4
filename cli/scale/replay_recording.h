// muster replay --recording FILE
#pragma once

#include "absl/status/status.h"
#include "cli/output/environment.h"
#include "cli/scale/replay_options.h"

namespace muster::cli {

// Decides the recorded run anew and says whether the decisions are the same. FailedPrecondition:
// they are not; the first difference is printed.
absl::Status RunRecording(const ReplayOptions& options, const Environment& environment);

}  // namespace muster::cli
