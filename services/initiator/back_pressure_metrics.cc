// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/back_pressure_metrics.h"

#include <cstddef>
#include <limits>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/item/queue_names.h"
#include "muster/telemetry/catalogue.h"

namespace muster::initiator {

std::unique_ptr<telemetry::Reading> ReadBackPressure(telemetry::Registry* registry,
                                                     const batch::BackPressure* back_pressure) {
  const auto read = [back_pressure](telemetry::Samples* samples) {
    for (const auto& held : back_pressure->HeldQueues(std::numeric_limits<size_t>::max())) {
      samples->Set(telemetry::kHeldBackItems, {item::LogicalName(held.queue.name)},
                   static_cast<double>(held.items));
    }
    const batch::BackPressureCounters counters = back_pressure->counters();
    samples->Set(telemetry::kHeldBackBatches, {}, static_cast<double>(counters.held_batches));
    samples->Set(telemetry::kHeldBackTime, {}, absl::ToDoubleSeconds(counters.held_time));
    return absl::OkStatus();
  };
  return telemetry::ReadAtScrape(
      registry, "back-pressure",
      {telemetry::kHeldBackItems.entry(), telemetry::kHeldBackBatches.entry(),
       telemetry::kHeldBackTime.entry()},
      read);
}

}  // namespace muster::initiator
