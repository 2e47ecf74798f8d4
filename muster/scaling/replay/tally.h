// Tally: what became of the items, and what it cost.
#pragma once

#include <cstdint>

#include "muster/scaling/replay/latency_histogram.h"

namespace muster::scaling::replay {

struct Tally {
  LatencyHistogram latencies;
  int64_t violations = 0;  // items that took longer than the SLA
  int64_t work_us = 0;     // of tasks
  // Replicas' time: from their start to their end, whether they work or not.
  int64_t replica_us = 0;
  int64_t ready_us = 0;  // without the time that they take to start
};

}  // namespace muster::scaling::replay
