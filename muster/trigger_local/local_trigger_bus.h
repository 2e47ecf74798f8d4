// LocalTriggerBus: the multicast within one process.
//
// Publish runs the subscribers itself, one after the other and one publisher at a time. So an event
// has been heard when Publish returns, and nothing is ever queued.
#pragma once

#include <memory>
#include <utility>

#include "muster/trigger/fan_out.h"
#include "muster/trigger/trigger_bus.h"

namespace muster::trigger_local {

// Thread-safe. Subscriptions may outlive the bus.
class LocalTriggerBus final : public trigger::TriggerBus {
 public:
  // FailedPrecondition when called by a subscriber.
  absl::Status Publish(const trigger::InterRoleCommunicationEvent& event) override {
    return fan_out_.Tell(event);
  }

  // As FanOut::Subscribe.
  absl::StatusOr<std::unique_ptr<Subscription>> Subscribe(Subscriber subscriber) override {
    return fan_out_.Subscribe(std::move(subscriber));
  }

 private:
  trigger::FanOut fan_out_;
};

}  // namespace muster::trigger_local
