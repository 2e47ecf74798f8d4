// muster queue check [--repair]
#pragma once

#include "cli/output/environment.h"

namespace muster::cli {

// Adds the command to those of `queue`. `environment` outlives the app.
void AddQueueCheck(CLI::App* queue, const Environment& environment);

}  // namespace muster::cli
