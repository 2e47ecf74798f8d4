// The commands of this folder: scale and replay. Each function adds its command, or its family of
// commands, to `app`; `environment` outlives the app.
#pragma once

#include "cli/output/environment.h"

namespace CLI {
class App;
}  // namespace CLI

namespace muster::cli {

void AddReplay(CLI::App* app, const Environment& environment);
void AddScale(CLI::App* app, const Environment& environment);

}  // namespace muster::cli
