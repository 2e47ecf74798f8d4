// The bounds of the trigger seam, each with its reason.
#pragma once

#include "muster/base/fan_out.h"
#include "muster/bus/heartbeat_bus.h"
#include "muster/bus/trigger_bus.h"

namespace muster::bus {

// Every event goes to every subscriber of the process. A process listens to a few queues with a few
// partitions each; thousands of subscriptions mean that somebody forgets to end them.
inline constexpr int kMaxTriggerSubscriptions = 4096;

// FanOut: tells each subscriber of one process of each event, for a trigger bus to be made of.

// As base::FanOut, for at most kMaxTriggerSubscriptions.
class FanOut final : public base::FanOut<InterRoleCommunicationEvent, TriggerBus::Subscription> {
 public:
  FanOut()
      : base::FanOut<InterRoleCommunicationEvent, TriggerBus::Subscription>(
            kMaxTriggerSubscriptions) {}
};

// Tells each subscriber of one process of each heartbeat, for a bus to be made of.

// As base::FanOut, for at most kMaxHeartbeatSubscriptions.
class HeartbeatFanOut final : public base::FanOut<v1::Heartbeat, HeartbeatBus::Subscription> {
 public:
  HeartbeatFanOut()
      : base::FanOut<v1::Heartbeat, HeartbeatBus::Subscription>(kMaxHeartbeatSubscriptions) {}
};

}  // namespace muster::bus
