// FanOut: tells each subscriber of one process of each event, for a trigger bus to be made of.
#pragma once

#include "muster/base/fan_out.h"
#include "muster/bus/trigger_bus.h"
#include "muster/bus/trigger_limits.h"

namespace muster::bus {

// As base::FanOut, for at most kMaxTriggerSubscriptions.
class FanOut final : public base::FanOut<InterRoleCommunicationEvent, TriggerBus::Subscription> {
 public:
  FanOut()
      : base::FanOut<InterRoleCommunicationEvent, TriggerBus::Subscription>(
            kMaxTriggerSubscriptions) {}
};

}  // namespace muster::bus
