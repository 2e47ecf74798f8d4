// SPDX-License-Identifier: Apache-2.0

// OpenMetricsText: metrics in the OpenMetrics text format 1.0.0
// (https://github.com/prometheus/OpenMetrics), which Prometheus asks for where it stores exemplars.
// Only for the registry.
#pragma once

#include <string>
#include <vector>

#include "muster/telemetry/family.h"

namespace muster::telemetry {

std::string OpenMetricsText(const std::vector<CollectedFamily>& families);

}  // namespace muster::telemetry
