// Failpoints: named instants between two durable steps at which a test ends the process.
//
//   MUSTER_FAILPOINT("controller.after_commit");
//
// In a build with tests, the environment variable MUSTER_FAILPOINT=NAME[:N] has the process kill
// itself with SIGKILL when it passes the failpoint NAME for the Nth time (the first if N is left
// out). A test of a name that is never passed fails because nobody dies. Elsewhere the macro is
// nothing at all: what users run has no failpoints.
//
// Names are "place.when", each once in the source; tests/integration/failpoint_test.py wants a
// scenario for every one, and docs/reliability.md lists them.
#pragma once

#ifdef MUSTER_FAILPOINTS

#include <atomic>
#include <functional>
#include <string>

#include "absl/strings/string_view.h"

namespace muster::base {

// Some failpoint is armed. Nothing else is looked at where it is false.
extern std::atomic<bool> failpoints_armed;

// What MUSTER_FAILPOINT expands to. Thread-safe.
void PassFailpoint(absl::string_view name);

// Has `act` called, on the thread that passes it, at the `nth` passage of a failpoint from now on.
// Takes the place of what the environment armed; one at a time.
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
