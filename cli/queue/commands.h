// The commands of this folder: queue. Each function adds its command, or its family of commands, to
// `app`; `environment` outlives the app.
#pragma once

#include "cli/output/environment.h"

namespace muster::cli {

void AddQueue(CLI::App* app, const Environment& environment);
// Adds `muster queue check` to `queue`.
void AddQueueCheck(CLI::App* queue, const Environment& environment);

}  // namespace muster::cli
