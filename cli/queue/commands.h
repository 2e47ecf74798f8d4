// SPDX-License-Identifier: Apache-2.0

// The commands of this folder: queue and check. Each function adds its command, or its family of
// commands, to `app`; `environment` outlives the app.
#pragma once

#include "cli/output/environment.h"

namespace muster::cli {

void AddQueue(CLI::App* app, const Environment& environment);
// To the program, and under its earlier name to `muster queue`.
void AddCheck(CLI::App* app, const Environment& environment);

}  // namespace muster::cli
