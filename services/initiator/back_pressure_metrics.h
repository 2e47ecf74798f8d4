// SPDX-License-Identifier: Apache-2.0

// What back-pressure holds back from full queues, read at each scrape.
#pragma once

#include <memory>

#include "muster/telemetry/registry.h"
#include "services/initiator/batch/back_pressure.h"

namespace muster::initiator {

// Neither is owned; `back_pressure` outlives the reading. Null if `registry` is null.
std::unique_ptr<telemetry::Reading> ReadBackPressure(telemetry::Registry* registry,
                                                     const batch::BackPressure* back_pressure);

}  // namespace muster::initiator
