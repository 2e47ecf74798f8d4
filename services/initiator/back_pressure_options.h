// The command line options of BackPressure, for the programs in which an initiator runs.
#pragma once

#include "services/initiator/batch/back_pressure.h"

namespace CLI {
class App;
}  // namespace CLI

namespace muster::initiator {

// Adds --max-queue-items and --max-queue-bytes, which MUSTER_MAX_QUEUE_ITEMS and
// MUSTER_MAX_QUEUE_BYTES set too. `options` outlives `app`.
void AddBackPressureOptions(CLI::App* app, batch::BackPressureOptions* options);

}  // namespace muster::initiator
