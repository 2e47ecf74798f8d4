// muster batch submit | watch | cancel
#pragma once

#include "cli/output/environment.h"

namespace muster::cli {

// Adds the verbs to `batch`. `environment` outlives the app.
void AddSubmitVerbs(CLI::App* batch, const Environment& environment);

}  // namespace muster::cli
