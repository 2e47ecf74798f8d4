// SPDX-License-Identifier: Apache-2.0

// The commands of this folder: schedule. The function adds its commands to `app`; `environment`
// outlives the app.
#pragma once

#include "cli/output/environment.h"

namespace muster::cli {

void AddSchedule(CLI::App* app, const Environment& environment);

}  // namespace muster::cli
