// Tells each subscriber of one process of each heartbeat, for a bus to be made of.
#pragma once

#include "muster/base/fan_out.h"
#include "muster/heartbeat/heartbeat_bus.h"
#include "muster/heartbeat/limits.h"

namespace muster::heartbeat {

// As base::FanOut, for at most kMaxHeartbeatSubscriptions.
class HeartbeatFanOut final : public base::FanOut<v1::Heartbeat, HeartbeatBus::Subscription> {
 public:
  HeartbeatFanOut()
      : base::FanOut<v1::Heartbeat, HeartbeatBus::Subscription>(kMaxHeartbeatSubscriptions) {}
};

}  // namespace muster::heartbeat
