// Actuator: the seam to what runs replicas. It carries out what the scaling agent has decided, and
// tells what there is; it decides nothing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace muster::scaling::actuator {

enum class ReplicaState {
  kStarting,  // made, but not yet ready to work
  kReady,
  kParked,    // warm, waiting to be let go
  kDraining,  // takes nothing new
};

struct Replica {
  std::string instance;  // as in its heartbeats; empty: it has not told yet
  std::string name;      // the actuator's own: a pod's, a process id
  ReplicaState state = ReplicaState::kStarting;
  absl::Time started;
};

struct TargetState {
  int wanted = 0;  // what the platform was last told
  std::vector<Replica> replicas;
  std::string trouble = {};  // for people: what keeps it from what is wanted; empty: nothing
};

// What shall be. Orders are absolute, so that giving one twice does no harm.
struct Order {
  std::string target = {};
  std::string decision = {};  // id of the decision that it carries out, for logs
  int replicas = 0;
  int tasks = 0;  // dequeue tasks of each; 0: as they are
  // Names of replicas that should go first if some must: those with the fewest leases.
  std::vector<std::string> let_go_first = {};
  // Of the agent's leader lease. A lower one than was ever seen comes from an agent that is no
  // longer the leader, and changes nothing.
  int64_t fencing_token = 0;
  // From this moment of the clock's Monotonic() on another agent may lead, and the order changes
  // nothing any more.
  absl::Duration not_after = absl::InfiniteDuration();
};

struct Outcome {
  int before = 0;
  int after = 0;       // what the platform was told
  std::string detail;  // for people
};

// Thread-safe. Calls block until the platform has answered, at most for the limit that the actuator
// was made with; they do not wait until replicas are ready or gone.
class Actuator {
 public:
  virtual ~Actuator() = default;

  // "process", "kubernetes", "threads", "dry-run".
  virtual std::string_view kind() const = 0;

  // - NotFound: there is no such target.
  // - PermissionDenied: this agent may not look at it; the message names what is missing.
  // - Unavailable: the platform did not answer; try again.
  virtual absl::StatusOr<TargetState> Observe(std::string_view target) = 0;

  // As Observe, and
  // - FailedPrecondition: the fencing token is stale; nothing was changed.
  // - Aborted: its moment has passed, `not_after`; the target is as it was.
  // - ResourceExhausted: the platform asks to slow down.
  // Replicas that go finish what they hold: they drain first.
  virtual absl::StatusOr<Outcome> Apply(const Order& order) = 0;
};

}  // namespace muster::scaling::actuator
