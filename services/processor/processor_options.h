// What a processor can be told on its command line, beside what its host can be told.
#pragma once

#include "services/processor/processor_service.h"

namespace CLI {
class App;
}  // namespace CLI

namespace muster::processor {

// Adds --handler-tls-roots, --handler-tls-cert and --handler-tls-key, which the environment sets
// too: MUSTER_HANDLER_TLS_ROOTS. `access` outlives `app`.
void AddHandlerOptions(CLI::App* app, HandlerAccess* access);

// Adds those, and --job NAME[=THREADS] and --threads, which the environment sets too: MUSTER_JOB
// with commas between. Each job has workers of its own, so that a flood of one leaves those of
// others free. Without --threads there are as many for each as the machine has cores. `options`
// outlives `app`.
void AddProcessorOptions(CLI::App* app, ServiceOptions* options);

}  // namespace muster::processor
