// The command-line options of a scaling agent, in addition to those of its host.
#pragma once

#include "services/scaling-agent/scaling_agent_role.h"

namespace CLI {
class App;
}  // namespace CLI

namespace muster::scaling_agent {

// Adds the options; environment variables set them too. An invalid rules file is reported as a
// command-line error, with file, line and reason. `options` outlives `app`.
void AddAgentOptions(CLI::App* app, RoleOptions* options);

}  // namespace muster::scaling_agent
