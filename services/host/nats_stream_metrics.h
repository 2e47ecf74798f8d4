// SPDX-License-Identifier: Apache-2.0

// What the NATS servers keep for muster, as metrics.
#pragma once

#include <memory>

#include "muster/backend/backend.h"
#include "muster/telemetry/registry.h"

namespace muster::host {

// Asks at each scrape, as Backends::ReadStreams. Neither is owned; `backends` outlives the reading.
std::unique_ptr<telemetry::Reading> ReadNatsStreams(telemetry::Registry* registry,
                                                    backend::Backends* backends);

}  // namespace muster::host
