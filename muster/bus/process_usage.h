// What this process uses of its machine.
#pragma once

#include <cstdint>

#include "absl/time/time.h"

namespace muster::bus {

struct ProcessUsage {
  absl::Duration cpu;  // user and system time since the process began
  uint64_t resident_bytes = 0;
};

// What the system does not tell is zero.
ProcessUsage MeasureProcess();

}  // namespace muster::bus
