// The bounds of the NATS bus for heartbeats, each with its reason.
#pragma once

#include "absl/time/time.h"

namespace muster::bus::nats {

// A publisher waits at most this long for the server to confirm: the next heartbeat is due then.
inline constexpr absl::Duration kHeartbeatPublishTimeout = absl::Seconds(1);
// A server takes under a millisecond to say that it is there. Less than anybody who asks for the
// instances waits for them.
inline constexpr absl::Duration kAnswerTimeout = absl::Seconds(1);

}  // namespace muster::bus::nats
