// The commands of this folder: batch, gc and report. Each function adds its command, or its family
// of commands, to `app`; `environment` outlives the app.
#pragma once

#include "cli/output/environment.h"

namespace muster::cli {

void AddBatch(CLI::App* app, const Environment& environment);
void AddGc(CLI::App* app, const Environment& environment);
void AddReport(CLI::App* app, const Environment& environment);
// Adds `muster batch delete` to `batch`.
void AddDelete(CLI::App* batch, const Environment& environment);
// Adds `muster batch submit`, `watch` and `cancel` to `batch`.
void AddSubmitVerbs(CLI::App* batch, const Environment& environment);

}  // namespace muster::cli
