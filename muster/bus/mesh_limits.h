// The bounds of what role instances know of each other, each with its reason.
#pragma once

#include <cstddef>

#include "absl/time/time.h"

namespace muster::bus {

// Often enough that a dead instance is missed within seconds, seldom enough that a hundred of them
// are no load.
inline constexpr absl::Duration kHeartbeatInterval = absl::Seconds(2);
// Between two heartbeats of which the second greets newcomers: when a fleet starts, each answers
// all of them at once.
inline constexpr absl::Duration kGreetInterval = absl::Milliseconds(100);
// So many in a row must be missing before an instance counts as leaving.
inline constexpr int kMissingHeartbeats = 3;
// Whoever looks every half a minute sees that one has left; later it is only noise.
inline constexpr absl::Duration kForgetAfter = absl::Minutes(1);

// Of instances' names, addresses and versions: what is longer was made up.
inline constexpr size_t kMaxInfoBytes = 256;
// A mesh has hundreds of instances; thousands mean that somebody makes them up. With the most that
// a heartbeat may have (heartbeat/limits.h) they take 64 MiB.
inline constexpr size_t kMaxInstances = 1000;
// Of the heartbeats in one answer, so that no answer is larger than gRPC takes by default.
inline constexpr size_t kMaxLoadBytes = size_t{3} << 20;

}  // namespace muster::bus
