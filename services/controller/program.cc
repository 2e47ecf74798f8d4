// SPDX-License-Identifier: Apache-2.0
#include "services/controller/program.h"

#include <memory>

#include "absl/status/statusor.h"
#include "muster/args/option.h"
#include "muster/base/clock.h"
#include "services/controller/controller_role.h"
#include "services/host/host.h"

namespace muster::controller {

int Main(int argc, char** argv) {
  RoleOptions options;
  host::ServiceProgram program;
  program.role = host::kController;
  program.about =
      "muster-controller: counts the results of every job exactly once, into one report.";
  program.add_options = [&options](CLI::App* app) {
    AddControllerOptions(app, &options);
    args::Add(app, "--initiator", &options.initiators,
              "HOST:PORT of an initiator whose heartbeats are not heard here; may be given "
              "more than once")
        .Envname(host::EnvironmentName("--initiator"))
        .Delimiter(',');
  };
  program.make_role = [&options](
                          const host::HostOptions& host,
                          base::Clock* clock) -> absl::StatusOr<std::unique_ptr<host::Role>> {
    return std::make_unique<ControllerRole>(host, options, clock);
  };
  return host::RunService(argc, argv, program);
}

}  // namespace muster::controller
