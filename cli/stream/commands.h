// SPDX-License-Identifier: Apache-2.0

// The commands of this folder: stream, and replay of the family partition. Each function adds its
// command, or its family of commands, to `app`; `environment` outlives the app.
#pragma once

#include "cli/output/environment.h"

namespace muster::cli {

void AddStream(CLI::App* app, const Environment& environment);
// To the family `muster partition`, which is there.
void AddPartitionReplay(CLI::App* app, const Environment& environment);

}  // namespace muster::cli
