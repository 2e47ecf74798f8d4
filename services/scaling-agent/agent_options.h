// What a scaling agent can be told on its command line, beside what its host can be told.
#pragma once

#include "services/scaling-agent/scaling_agent_role.h"

namespace CLI {
class App;
}  // namespace CLI

namespace muster::scaling_agent {

// Adds the options, which the environment sets too. Rules that are not sound are refused as a wrong
// command line is, with file, line and reason. `options` outlives `app`.
void AddAgentOptions(CLI::App* app, RoleOptions* options);

}  // namespace muster::scaling_agent
