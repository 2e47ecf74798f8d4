// `muster-initiator`: takes batches in, splits them, and works on them until they are complete.
#include "CLI/CLI.hpp"
#include "services/host/host.h"
#include "services/initiator/initiator_role.h"

int main(int argc, char** argv) {
  namespace host = muster::host;
  namespace initiator = muster::initiator;
  initiator::RoleOptions options;
  host::ServiceProgram program;
  program.role = host::kInitiator;
  program.about =
      "muster-initiator: takes batches in, splits them into work items, and sees them through.\n"
      "Its data directory holds their content and their ledger: keep it.";
  program.add_options = [&options](CLI::App* app) {
    app->add_option("--controller", options.controller,
                    "HOST:PORT of the controller; without it, the one whose heartbeats are heard")
        ->envname(host::EnvironmentName("--controller"));
    initiator::AddInitiatorOptions(app, &options);
  };
  program.make_role =
      [&options](const host::HostOptions& host,
                 muster::base::Clock* clock) -> absl::StatusOr<std::unique_ptr<host::Role>> {
    return std::make_unique<initiator::InitiatorRole>(host, options, clock);
  };
  return host::RunService(argc, argv, program);
}
