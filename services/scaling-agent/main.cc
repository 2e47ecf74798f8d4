// SPDX-License-Identifier: Apache-2.0

// `muster-scaling-agent`: sizes the workers by the deadlines of the queued work.
#include "CLI/CLI.hpp"
#include "services/host/host.h"
#include "services/scaling-agent/scaling_agent_role.h"

int main(int argc, char** argv) {
  namespace host = muster::host;
  namespace scaling_agent = muster::scaling_agent;
  scaling_agent::RoleOptions options;
  host::ServiceProgram program;
  program.role = host::kScalingAgent;
  program.about =
      "muster-scaling-agent: watches queues and workers, and sizes them by the deadlines of the "
      "queued work.";
  program.add_options = [&options](CLI::App* app) {
    scaling_agent::AddAgentOptions(app, &options);
  };
  program.make_role =
      [&options](const host::HostOptions& host,
                 muster::base::Clock* clock) -> absl::StatusOr<std::unique_ptr<host::Role>> {
    return std::make_unique<scaling_agent::ScalingAgentRole>(host, options, clock);
  };
  return host::RunService(argc, argv, program);
}
