// SPDX-License-Identifier: Apache-2.0

// What Linux knows of this process, as metrics with the names that all client libraries of
// Prometheus give.
#pragma once

#include <memory>

#include "muster/telemetry/registry.h"

namespace muster::host {

// Reads /proc at each scrape; where that cannot be read, the scrape lacks these metrics. `registry`
// is not owned; null: nothing is read, and the result is null.
std::unique_ptr<telemetry::Reading> ReadProcess(telemetry::Registry* registry);

}  // namespace muster::host
