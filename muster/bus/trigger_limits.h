// The bounds of the trigger seam, each with its reason.
#pragma once

namespace muster::bus {

// Every event goes to every subscriber of the process. A process listens to a few queues with a few
// partitions each; thousands of subscriptions mean that somebody forgets to end them.
inline constexpr int kMaxTriggerSubscriptions = 4096;

}  // namespace muster::bus
