// The policies that `muster replay` compares: this is where rules are put around our own.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "cli/scale/replay_options.h"
#include "muster/scaling/replay/catalogue.h"

namespace muster::cli {

// Takes over into `options->sim` what the rules say of the target: its SLA where none was given,
// the name of its queue, and its bounds. InvalidArgument, NotFound: an option or the rules are
// wrong.
absl::StatusOr<std::vector<scaling::replay::PolicyEntry>> ComposePolicies(ReplayOptions* options);

}  // namespace muster::cli
