// SPDX-License-Identifier: Apache-2.0

// FanOut, HeartbeatFanOut: pass each event to all subscribers of one process.
#pragma once

#include "muster/base/fan_out.h"
#include "muster/bus/heartbeat_bus.h"
#include "muster/bus/trigger_bus.h"

namespace muster::bus {

// Limit of trigger subscriptions: every event goes to every subscriber of the process. A process
// listens to a few queues with a few partitions each, so thousands of subscriptions mean that some
// caller never ends them.
inline constexpr int kMaxTriggerSubscriptions = 4096;

// FanOut: passes each trigger event to every subscriber of one process. Trigger buses are built on
// it.

// As base::FanOut, for at most kMaxTriggerSubscriptions.
class FanOut final : public base::FanOut<InterRoleCommunicationEvent, TriggerBus::Subscription> {
 public:
  FanOut()
      : base::FanOut<InterRoleCommunicationEvent, TriggerBus::Subscription>(
            kMaxTriggerSubscriptions) {}
};

// HeartbeatFanOut: passes each heartbeat to every subscriber of one process. Heartbeat buses are
// built on it.

// As base::FanOut, for at most kMaxHeartbeatSubscriptions.
class HeartbeatFanOut final : public base::FanOut<v1::Heartbeat, HeartbeatBus::Subscription> {
 public:
  HeartbeatFanOut()
      : base::FanOut<v1::Heartbeat, HeartbeatBus::Subscription>(kMaxHeartbeatSubscriptions) {}
};

}  // namespace muster::bus
