// muster scale status | simulate | decisions | explain | override | rules
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "cli/output/environment.h"
#include "cli/server/options.h"

namespace muster::cli {

// Each adds its verbs to `scale`. `environment` outlives the app.
void AddScaleRules(CLI::App* scale, const Environment& environment);
void AddScaleStatus(CLI::App* scale, const Environment& environment);
void AddScaleDecisions(CLI::App* scale, const Environment& environment);
void AddScaleOverride(CLI::App* scale, const Environment& environment);

struct ScaleVerb {
  const char* name;
  const char* about;
  Csv csv = Csv::kNo;
};

// A verb that asks the scaling agent. `Options` has `common`; `verb` is a function of (const
// Options&, const Environment&) that answers absl::Status.
template <typename Options, typename Verb>
CLI::App* AddScaleVerb(CLI::App* scale, const ScaleVerb& words,
                       const std::shared_ptr<Options>& options, Verb verb,
                       const Environment& environment) {
  CLI::App* const command = scale->add_subcommand(words.name, words.about);
  AddServer(command, &options->common);
  AddOutput(command, &options->common, words.csv);
  command->callback([options, verb, &environment] {
    if (const absl::Status status = verb(*options, environment); !status.ok()) {
      environment.Fail(status);
    }
  });
  return command;
}

}  // namespace muster::cli
