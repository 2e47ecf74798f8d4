// LocalHeartbeatBus: the multicast within one process. Subscribers have heard a heartbeat when
// Publish returns.
#pragma once

#include <memory>
#include <utility>

#include "muster/bus/heartbeat_bus.h"
#include "muster/bus/heartbeat_fan_out.h"

namespace muster::bus::local {

// Thread-safe. Subscriptions may outlive the bus.
class LocalHeartbeatBus final : public HeartbeatBus {
 public:
  // FailedPrecondition when called by a subscriber.
  absl::Status Publish(const v1::Heartbeat& heartbeat) override { return fan_out_.Tell(heartbeat); }

  // As base::FanOut::Subscribe.
  absl::StatusOr<std::unique_ptr<Subscription>> Subscribe(Subscriber subscriber) override {
    return fan_out_.Subscribe(std::move(subscriber));
  }

 private:
  HeartbeatFanOut fan_out_;
};

}  // namespace muster::bus::local
