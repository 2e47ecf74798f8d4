// SPDX-License-Identifier: Apache-2.0

// Snapshot: the values of all metrics at one moment, for exporters other than the scrape.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "muster/telemetry/metric.h"

namespace muster::telemetry {

// One series of a metric.
struct Point {
  std::vector<std::string> labels;  // values, in the order of the metric's labels
  double value = 0;                 // of a counter or gauge; of a histogram: the sum
  // Of a histogram: how many values lie in each bucket alone, the last above all bounds.
  std::vector<uint64_t> counts;
};

struct MetricSnapshot {
  Metric metric;
  std::vector<Point> points;
};

using Snapshot = std::vector<MetricSnapshot>;

}  // namespace muster::telemetry
