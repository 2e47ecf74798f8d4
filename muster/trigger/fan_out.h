// FanOut: tells each subscriber of one process of each event, for a trigger bus to be made of.
#pragma once

#include "muster/base/fan_out.h"
#include "muster/trigger/limits.h"
#include "muster/trigger/trigger_bus.h"

namespace muster::trigger {

// As base::FanOut, for at most kMaxTriggerSubscriptions.
class FanOut final : public base::FanOut<InterRoleCommunicationEvent, TriggerBus::Subscription> {
 public:
  FanOut()
      : base::FanOut<InterRoleCommunicationEvent, TriggerBus::Subscription>(
            kMaxTriggerSubscriptions) {}
};

}  // namespace muster::trigger
