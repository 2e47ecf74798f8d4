// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/program.h"

#include <memory>

#include "absl/status/statusor.h"
#include "muster/args/option.h"
#include "muster/base/clock.h"
#include "services/host/host.h"
#include "services/initiator/initiator_role.h"

namespace muster::initiator {

int Main(int argc, char** argv) {
  RoleOptions options;
  host::ServiceProgram program;
  program.role = host::kInitiator;
  program.about =
      "muster-initiator: takes batches in, splits them into work items, and sees them through.\n"
      "Its data directory holds their content and their ledger: keep it.";
  program.add_options = [&options](CLI::App* app) {
    args::Add(app, "--controller", &options.controller,
              "HOST:PORT of the controller; without it, the one whose heartbeats are heard")
        .Envname(host::EnvironmentName("--controller"));
    AddInitiatorOptions(app, &options);
  };
  program.make_role = [&options](
                          const host::HostOptions& host,
                          base::Clock* clock) -> absl::StatusOr<std::unique_ptr<host::Role>> {
    return std::make_unique<InitiatorRole>(host, options, clock);
  };
  return host::RunService(argc, argv, program);
}

}  // namespace muster::initiator
