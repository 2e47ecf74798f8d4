// SPDX-License-Identifier: Apache-2.0

// The commands of this folder: worker. Each function adds its command, or its family of commands,
// to `app`; `environment` outlives the app.
#pragma once

#include "cli/output/environment.h"

namespace muster::cli {

void AddWorker(CLI::App* app, const Environment& environment);

}  // namespace muster::cli
