// SPDX-License-Identifier: Apache-2.0

// Failpoints: named instants between two durable steps at which a test ends the process.
//
//   MUSTER_FAILPOINT("controller.after_commit");
//
// In a build with tests, the environment variable MUSTER_FAILPOINT=NAME[:N] makes the process kill
// itself with SIGKILL when it passes the failpoint NAME for the Nth time (the first if N is left
// out). A test that names a failpoint which is never passed fails, because no process dies. In
// other builds the macro expands to nothing: what users run has no failpoints.
//
// Names are "place.when", each once in the source; tests/integration/failpoint_test.py demands a
// scenario for every name, and docs/reliability.md lists them.
#pragma once

#ifdef MUSTER_FAILPOINTS

#include <atomic>
#include <functional>
#include <string>

#include "absl/strings/string_view.h"

namespace muster::base {

// Whether a failpoint is armed. MUSTER_FAILPOINT looks at nothing else while it is false.
extern std::atomic<bool> failpoints_armed;

// What MUSTER_FAILPOINT expands to. Thread-safe.
void PassFailpoint(absl::string_view name);

// Calls `act` at the `nth` passage of a failpoint from now on, on the thread that passes it.
// Replaces what the environment armed; at most one object exists at a time.
class ArmedFailpoint {
 public:
  ArmedFailpoint(std::string name, int nth, std::function<void()> act);
  ~ArmedFailpoint();
  ArmedFailpoint(const ArmedFailpoint&) = delete;
  ArmedFailpoint& operator=(const ArmedFailpoint&) = delete;
};

// Arms what "NAME[:N]" says, to kill the process; "" disarms. False, and no change, when N is no
// positive number.
bool ArmFailpointToKill(absl::string_view text);

}  // namespace muster::base

#define MUSTER_FAILPOINT(name)                                    \
  do {                                                            \
    if (base::failpoints_armed.load(std::memory_order_relaxed)) { \
      base::PassFailpoint(name);                                  \
    }                                                             \
  } while (false)

#else

#define MUSTER_FAILPOINT(name) \
  do {                         \
  } while (false)

#endif
