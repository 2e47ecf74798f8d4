// SPDX-License-Identifier: Apache-2.0

// The command line of `muster`: every command, parsed and run.
#pragma once

#include "cli/output/environment.h"

namespace muster::cli {

// Runs `muster` with these arguments, the program's name first, and answers its exit code.
int RunCommandLine(int argc, const char* const* argv, const Environment& environment);

// The commands of the program itself. `environment` outlives the app.
void AddCompletion(CLI::App* app, const Environment& environment);
void AddHelp(CLI::App* app, const Environment& environment);
void AddVersion(CLI::App* app, const Environment& environment);

}  // namespace muster::cli
