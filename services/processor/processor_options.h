// What a processor can be told on its command line, beside what its host can be told.
#pragma once

#include "services/processor/processor_service.h"

namespace CLI {
class App;
}  // namespace CLI

namespace muster::processor {

// Adds --job and --threads, which the environment sets too. Without --threads there are as many as
// the machine has cores. `options` outlives `app`.
void AddProcessorOptions(CLI::App* app, ServiceOptions* options);

}  // namespace muster::processor
