// SPDX-License-Identifier: Apache-2.0

// `muster up`: a whole mesh in one process.
#include <memory>

#include "cli/output/environment.h"
#include "cli/run/commands.h"
#include "muster/args/command.h"
#include "services/host/all_roles/all_roles.h"
#include "services/host/host.h"
#include "services/host/host_options.h"
#include "services/host/parse_error.h"
#include "services/initiator/initiator_role.h"
#include "services/processor/processor_role.h"

namespace muster::cli {
namespace {

// The port of the initiator, at which clients look for a mesh.
constexpr host::RoleInfo kUp{"up", host::kInitiator.port};

constexpr char kAboutUp[] =
    "Serve a whole mesh from this process: initiator, processor and controller.\n"
    "What they share is in the data directory; with --nats it is on that NATS server, and other\n"
    "processors may help.";

struct UpOptions {
  host::HostOptions host{kUp};
  host::all_roles::RoleOptions roles;
};

}  // namespace

void AddUp(CLI::App* app, const Environment& environment) {
  CLI::App* const command = args::AddSubcommand(app, "up", kAboutUp);
  auto options = std::make_shared<UpOptions>();
  options->host.nats_url.clear();
  host::AddHostOptions(command, &options->host);
  initiator::AddInitiatorOptions(command, &options->roles.initiator);
  processor::AddProcessorOptions(command, &options->roles.processor);
  controller::AddControllerOptions(command, &options->roles.controller);
  args::OnRun(command, [options, command, &environment] {
    host::TakeRefusedVariables(command);
    host::TakeDefaultMetrics(command, options->host.listen.front(), &options->host);
    const auto make_role = [&](const host::HostOptions& host, base::Clock* clock) {
      return std::make_unique<host::all_roles::AllRoles>(environment.handlers, host, options->roles,
                                                         clock);
    };
    const absl::Status served = host::RunRole("muster up", options->host, make_role);
    if (!served.ok()) environment.Fail(served);
  });
}

}  // namespace muster::cli
