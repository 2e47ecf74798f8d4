#include "cli/scale/scale_command.h"

namespace muster::cli {

void AddScale(CLI::App* app, const Environment& environment) {
  CLI::App* const scale = app->add_subcommand("scale", "Grow and shrink by rules and deadlines");
  scale->require_subcommand(1);
  AddScaleStatus(scale, environment);
  AddScaleDecisions(scale, environment);
  AddScaleOverride(scale, environment);
  AddScaleRules(scale, environment);
}

}  // namespace muster::cli
