// What an initiator can be told on its command line, wherever it runs, beside what its host can be
// told.
#pragma once

#include "services/initiator/initiator_role.h"

namespace CLI {
class App;
}  // namespace CLI

namespace muster::initiator {

// Adds --trace-sample, which MUSTER_TRACE_SAMPLE sets too: the share of batches, 0 to 1, that are
// sampled of those whose submitter names no trace. `options` outlives `app`.
void AddInitiatorOptions(CLI::App* app, RoleOptions* options);

}  // namespace muster::initiator
