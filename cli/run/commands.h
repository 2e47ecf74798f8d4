// SPDX-License-Identifier: Apache-2.0

// The commands of this folder: run, up, job, cost and serve-handler. Each function adds its
// command, or its family of commands, to `app`; `environment` outlives the app.
#pragma once

#include "cli/output/environment.h"

namespace muster::cli {

void AddCost(CLI::App* app, const Environment& environment);
void AddJob(CLI::App* app, const Environment& environment);
void AddRun(CLI::App* app, const Environment& environment);
void AddServeHandler(CLI::App* app, const Environment& environment);
void AddUp(CLI::App* app, const Environment& environment);

}  // namespace muster::cli
