// SPDX-License-Identifier: Apache-2.0

// The command line options that bound what an initiator keeps, for the programs in which one runs.
#pragma once

#include "services/initiator/batch/back_pressure.h"
#include "services/initiator/retention/stopped_uploads.h"

namespace CLI {
class App;
}  // namespace CLI

namespace muster::initiator {

// Adds --max-queue-items and --max-queue-bytes, which MUSTER_MAX_QUEUE_ITEMS and
// MUSTER_MAX_QUEUE_BYTES set too. `options` outlives `app`.
void AddBackPressureOptions(CLI::App* app, batch::BackPressureOptions* options);

// Adds --max-stopped-uploads and --max-stopped-upload-bytes, with their variables. `options`
// outlives `app`.
void AddUploadOptions(CLI::App* app, retention::UploadLimits* options);

}  // namespace muster::initiator
