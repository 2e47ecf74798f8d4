// SPDX-License-Identifier: Apache-2.0

// The commands of this folder: scale and replay. Each function adds its command, or its family of
// commands, to `app`; `environment` outlives the app.
#pragma once

#include "cli/output/environment.h"

namespace muster::cli {

void AddReplay(CLI::App* app, const Environment& environment);
void AddScale(CLI::App* app, const Environment& environment);
// Adds `muster scale rules` to `scale`.
void AddScaleRules(CLI::App* scale, const Environment& environment);

}  // namespace muster::cli
