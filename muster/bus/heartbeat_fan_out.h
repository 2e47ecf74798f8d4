// Tells each subscriber of one process of each heartbeat, for a bus to be made of.
#pragma once

#include "muster/base/fan_out.h"
#include "muster/bus/heartbeat_bus.h"
#include "muster/bus/limits.h"

namespace muster::bus {

// As base::FanOut, for at most kMaxHeartbeatSubscriptions.
class HeartbeatFanOut final : public base::FanOut<v1::Heartbeat, HeartbeatBus::Subscription> {
 public:
  HeartbeatFanOut()
      : base::FanOut<v1::Heartbeat, HeartbeatBus::Subscription>(kMaxHeartbeatSubscriptions) {}
};

}  // namespace muster::bus
