// SPDX-License-Identifier: Apache-2.0

// The commands of this folder: batch, call, gc and report. Each function adds its command, or its
// family of commands, to `app`; `environment` outlives the app.
#pragma once

#include "cli/output/environment.h"

namespace muster::cli {

void AddBatch(CLI::App* app, const Environment& environment);
void AddCall(CLI::App* app, const Environment& environment);
void AddGc(CLI::App* app, const Environment& environment);
void AddReport(CLI::App* app, const Environment& environment);
// Adds `muster batch delete` to `batch`.
void AddDelete(CLI::App* batch, const Environment& environment);
// Adds `muster batch rejections` and `dead-letters` to `batch`.
void AddFailures(CLI::App* batch, const Environment& environment);
// Adds `muster batch list` to `batch`.
void AddList(CLI::App* batch, const Environment& environment);
// Adds `muster batch output` to `batch`.
void AddBatchOutput(CLI::App* batch, const Environment& environment);
// Adds `muster batch retry` to `batch`.
void AddRetry(CLI::App* batch, const Environment& environment);
// Adds `muster batch submit`, `watch` and `cancel` to `batch`.
void AddSubmitVerbs(CLI::App* batch, const Environment& environment);

}  // namespace muster::cli
