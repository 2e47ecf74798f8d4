// SPDX-License-Identifier: Apache-2.0

// The commands of this folder: release. The function adds its command to `app`; `environment`
// outlives the app.
#pragma once

#include "cli/output/environment.h"

namespace muster::cli {

void AddRelease(CLI::App* app, const Environment& environment);

}  // namespace muster::cli
