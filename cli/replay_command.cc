// muster replay
#include <memory>

#include "CLI/CLI.hpp"
#include "cli/replay_options.h"
#include "cli/replay_policies.h"
#include "cli/replay_report.h"
#include "muster/base/status_macros.h"
#include "muster/scaling_sim/replay.h"

namespace muster::cli {
namespace {

absl::Status RunReplay(ReplayOptions* options, const Environment& environment) {
  scaling_sim::ReplayRequest request;
  MUSTER_ASSIGN_OR_RETURN(request.policies, ComposePolicies(options));
  request.options = options->sim;
  request.seeds = options->seeds;
  MUSTER_ASSIGN_OR_RETURN(const scaling_sim::Trace trace,
                          scaling_sim::ReadTrace(options->trace_file, options->trace));
  MUSTER_ASSIGN_OR_RETURN(const std::vector<scaling_sim::ReplayRow> rows,
                          scaling_sim::Replay(trace, request));
  WriteReplay(rows, options->common.output, *environment.out);
  return absl::OkStatus();
}

// What is missing cannot be said to CLI11: it depends on what else is there.
void CheckUsage(const ReplayOptions& options) {
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
    if (const absl::Status status = RunReplay(options.get(), environment); !status.ok()) {
      environment.Fail(status);
    }
  });
}

}  // namespace muster::cli
