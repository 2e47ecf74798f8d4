// SPDX-License-Identifier: Apache-2.0

// How many schedules there are, and what became of their occurrences, read at each scrape.
#pragma once

#include <memory>

#include "muster/telemetry/registry.h"
#include "services/initiator/schedule/runner.h"

namespace muster::initiator {

// Neither is owned; `runner` outlives the reading. Null if `registry` is null.
std::unique_ptr<telemetry::Reading> ReadSchedules(telemetry::Registry* registry,
                                                  const schedule::ScheduleRunner* runner);

}  // namespace muster::initiator
