// The bounds of the Kubernetes actuator, each with its reason.
#pragma once

#include "absl/time/time.h"

namespace muster::scaling::actuator::kubernetes {

// An order with all its requests; beyond it the agent's decision is out of date.
inline constexpr absl::Duration kOrderLimit = absl::Seconds(30);

// Pods that one order marks to go first: each is a request of some milliseconds. Kubernetes chooses
// the rest.
inline constexpr int kMaxMarks = 200;

// The server sends a bookmark about each minute: after longer silence the connection is dead.
inline constexpr absl::Duration kMaxSilence = absl::Seconds(90);

}  // namespace muster::scaling::actuator::kubernetes
