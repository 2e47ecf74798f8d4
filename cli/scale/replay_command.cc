// muster replay
#include <fstream>
#include <memory>
#include <ostream>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "cli/scale/replay_options.h"
#include "cli/scale/replay_policies.h"
#include "cli/scale/replay_recording.h"
#include "cli/scale/replay_report.h"
#include "muster/base/status_macros.h"
#include "muster/scaling/replay/plot.h"
#include "muster/scaling/replay/replay.h"

namespace muster::cli {
namespace {

absl::Status WritePlot(const scaling::replay::Plot& plot, const std::string& path) {
  std::ofstream file(path, std::ios::trunc | std::ios::binary);
  file << plot.ToSvg() << std::flush;
  if (file.good()) return absl::OkStatus();
  return absl::UnknownError(absl::StrCat("the plot '", path, "' cannot be written"));
}

absl::Status RunReplay(ReplayOptions* options, const Environment& environment) {
  scaling::replay::ReplayRequest request;
  MUSTER_ASSIGN_OR_RETURN(request.policies, ComposePolicies(options));
  request.options = options->sim;
  request.seeds = options->seeds;
  MUSTER_ASSIGN_OR_RETURN(const scaling::replay::Trace trace,
                          scaling::replay::ReadTrace(options->trace_file, options->trace));
  scaling::replay::Plot plot(trace, absl::ToInt64Seconds(2 * options->sim.sla));
  if (!options->plot_file.empty()) {
    request.sink_of = [&plot](const scaling::replay::PolicyEntry& entry) {
      return plot.AddPolicy(entry.name);
    };
  }
  MUSTER_ASSIGN_OR_RETURN(const std::vector<scaling::replay::ReplayRow> rows,
                          scaling::replay::Replay(trace, request));
  if (!options->plot_file.empty()) {
    MUSTER_RETURN_IF_ERROR(WritePlot(plot, options->plot_file));
  }
  WriteReplay(rows, options->common.output, *environment.out);
  return absl::OkStatus();
}

// What is missing cannot be said to CLI11: it depends on what else is there.
void CheckUsage(const ReplayOptions& options) {
  if (!options.recording_file.empty()) {
    if (!options.trace_file.empty()) throw CLI::ExcludesError("--recording", "--trace");
    return;
  }
  if (options.trace_file.empty()) throw CLI::RequiredError("--trace");
  if (options.sim.service_time == absl::ZeroDuration()) throw CLI::RequiredError("--service-time");
  if (options.sim.sla == absl::ZeroDuration() && options.rules_file.empty()) {
    throw CLI::RequiredError("--sla");
  }
}

}  // namespace

void AddReplay(CLI::App* app, const Environment& environment) {
  CLI::App* const command =
      app->add_subcommand("replay", "How scaling policies would have fared on a trace of arrivals");
  const auto options = std::make_shared<ReplayOptions>();
  AddReplayOptions(command, options.get());
  command->callback([options, &environment] {
    CheckUsage(*options);
    const absl::Status status = options->recording_file.empty()
                                    ? RunReplay(options.get(), environment)
                                    : RunRecording(*options, environment);
    if (!status.ok()) {
      environment.Fail(status);
    }
  });
}

}  // namespace muster::cli
