// The bounds of a NATS connection, each with its reason.
#pragma once

#include "absl/time/time.h"

namespace muster::nats {

// A lost server is looked for so often: soon enough for a restart, seldom enough for a herd.
inline constexpr absl::Duration kReconnectWait = absl::Milliseconds(250);
inline constexpr absl::Duration kReconnectJitter = absl::Milliseconds(100);
// A server that has gone silent is noticed after two of these.
inline constexpr absl::Duration kPingInterval = absl::Seconds(10);
// A server that takes nothing for so long is given up: until then a publisher is held up.
inline constexpr absl::Duration kWriteDeadline = absl::Seconds(2);
// Who waits for a confirmation looks so often whether there is still a connection: of its end
// nobody tells him.
inline constexpr absl::Duration kLookWhetherConnected = absl::Milliseconds(50);
// What is published meanwhile waits here; beyond it, publishing is refused.
inline constexpr int kMaxReconnectBufferBytes = 8 << 20;
// What arrived and was not heard yet. A pull brings at most some dozens of messages for each task,
// so this is met only when a handler hangs.
inline constexpr int kMaxPendingMessages = 1 << 20;
inline constexpr int kMaxPendingBytes = 512 << 20;

// So long a stream has to be gone until it is made anew: a server that comes back, or a connection
// that moves to another one, is of one mind by then.
inline constexpr absl::Duration kGoneFor = absl::Seconds(2);
// Processors without work look every half minute.
inline constexpr absl::Duration kMaxBetweenSightings = absl::Minutes(1);

}  // namespace muster::nats
