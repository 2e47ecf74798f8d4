// SPDX-License-Identifier: Apache-2.0

// Actuator: the interface to the platform that runs replicas. An actuator carries out the scaling
// agent's orders and reports the replicas that exist; it decides nothing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace muster::actuator {

enum class ReplicaState {
  kStarting,  // created, but not yet ready to work
  kReady,
  kParked,    // warm, waiting to be put to work
  kDraining,  // takes nothing new
};

struct Replica {
  std::string instance;  // as in its heartbeats; empty: not known yet
  std::string name;      // the actuator's own: a pod's, a process id
  ReplicaState state = ReplicaState::kStarting;
  absl::Time started;
};

struct TargetState {
  int wanted = 0;  // what the platform was last told
  std::vector<Replica> replicas;
  std::string trouble =
      {};  // for people: why the replicas differ from `wanted`; empty: no reason known
};

// The state that a target shall have. Orders are absolute, so that giving one twice does no harm.
struct Order {
  std::string target = {};
  std::string decision = {};  // id of the decision behind the order, for logs
  int replicas = 0;
  int tasks = 0;  // dequeue tasks of each replica; 0: unchanged
  // Names of the replicas that should go first when the target shrinks: those with the fewest
  // leases.
  std::vector<std::string> let_go_first = {};
  // The token of the agent's leader lease. An order with a lower token than an earlier one comes
  // from an agent that no longer leads, and changes nothing.
  int64_t fencing_token = 0;
  // From this moment of the clock's Monotonic() on, another agent may lead, and the order changes
  // nothing any more.
  absl::Duration not_after = absl::InfiniteDuration();
};

struct Outcome {
  int before = 0;
  int after = 0;       // what the platform was told
  std::string detail;  // for people
};

// Thread-safe. Calls block until the platform has answered, at most for the actuator's time limit;
// they do not wait until replicas are ready or gone.
class Actuator {
 public:
  virtual ~Actuator() = default;

  // "process", "kubernetes", "threads", "dry-run".
  virtual std::string_view kind() const = 0;

  // - NotFound: there is no such target.
  // - PermissionDenied: this agent may not look at it; the message names what is missing.
  // - Unavailable: the platform did not answer; try again.
  virtual absl::StatusOr<TargetState> Observe(std::string_view target) = 0;

  // The errors of Observe, and - FailedPrecondition: the fencing token is stale; nothing was
  // changed. - Aborted: the order has expired (`not_after`); the target is unchanged. -
  // ResourceExhausted: the platform asks to slow down. Replicas that go finish what they hold: they
  // drain first.
  virtual absl::StatusOr<Outcome> Apply(const Order& order) = 0;
};

}  // namespace muster::actuator
