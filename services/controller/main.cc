// `muster-controller`: counts the results of every job into one report.
#include "CLI/CLI.hpp"
#include "services/controller/controller_role.h"
#include "services/host/host.h"

int main(int argc, char** argv) {
  namespace controller = muster::controller;
  namespace host = muster::host;
  controller::RoleOptions options;
  host::ServiceProgram program;
  program.role = host::kController;
  program.about =
      "muster-controller: counts the results of every job exactly once, into one report.";
  program.add_options = [&options](CLI::App* app) {
    controller::AddControllerOptions(app, &options);
    app->add_option("--initiator", options.initiators,
                    "HOST:PORT of an initiator whose heartbeats are not heard here; may be given "
                    "more than once")
        ->envname(host::EnvironmentName("--initiator"))
        ->delimiter(',');
  };
  program.make_role =
      [&options](const host::HostOptions& host,
                 muster::base::Clock* clock) -> absl::StatusOr<std::unique_ptr<host::Role>> {
    return std::make_unique<controller::ControllerRole>(host, options, clock);
  };
  return host::RunService(argc, argv, program);
}
