// A trace: how many items came when.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/time/time.h"

namespace muster::scaling::replay {

inline constexpr int64_t kSecondUs = 1'000'000;

// One row of a trace. Its item j of n (from 0) comes at at_us + j·period_us/n.
struct Arrival {
  int64_t at_us = 0;  // since Trace::start
  int64_t items = 0;
  int64_t period_us = 0;  // 0: all at once
};

struct Trace {
  absl::Time start;               // a whole second; of the first row, or just before it
  std::vector<Arrival> arrivals;  // none of 0 items; at_us never falls
  int64_t items = 0;              // of all arrivals
  int64_t seconds = 0;            // until the last row's period is over, rounded up
};

// What came within a second, from its begin to just before its end.
struct SecondOfTrace {
  int64_t second = 0;  // since Trace::start
  int64_t items = 0;
};

// Seconds without items are left out. Periods may overlap.
std::vector<SecondOfTrace> BySecond(const Trace& trace);

// Items that come at one instant.
struct Instant {
  int64_t at_us = 0;
  int64_t items = 0;
};

// Every instant at which items come, in order.
std::vector<Instant> ByInstant(const Trace& trace);

}  // namespace muster::scaling::replay
