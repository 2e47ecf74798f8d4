// muster scale status | simulate | decisions | explain | override | rules
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "cli/environment.h"
#include "cli/place.h"

namespace muster::cli {

// Each adds its verbs to `scale`. `environment` outlives the app.
void AddScaleRules(CLI::App* scale, const Environment& environment);
void AddScaleStatus(CLI::App* scale, const Environment& environment);
void AddScaleDecisions(CLI::App* scale, const Environment& environment);
void AddScaleOverride(CLI::App* scale, const Environment& environment);

// A verb that asks the scaling agent. `Options` has `common`; `verb` is a function of (const
// Options&, const Environment&) that answers absl::Status.
template <typename Options, typename Verb>
CLI::App* AddScaleVerb(CLI::App* scale, const char* name, const char* about,
                       const std::shared_ptr<Options>& options, Verb verb, Csv csv,
                       const Environment& environment) {
  CLI::App* const command = scale->add_subcommand(name, about);
  AddServer(command, &options->common);
  AddOutput(command, &options->common, csv);
  command->callback([options, verb, &environment] {
    if (const absl::Status status = verb(*options, environment); !status.ok()) {
      environment.Fail(status);
    }
  });
  return command;
}

}  // namespace muster::cli
