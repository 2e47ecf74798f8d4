// SPDX-License-Identifier: Apache-2.0

// LocalTriggerBus, LocalHeartbeatBus: the multicast within one process.
//
// Publish itself calls the subscribers, one after the other and one publisher at a time. So all
// subscribers have received an event when Publish returns, and no event is ever queued.
#pragma once

#include <memory>
#include <utility>

#include "muster/bus/fan_out.h"
#include "muster/bus/heartbeat_bus.h"
#include "muster/bus/trigger_bus.h"

namespace muster::bus::local {

// Thread-safe. Subscriptions may outlive the bus.
class LocalTriggerBus final : public bus::TriggerBus {
 public:
  // FailedPrecondition when called by a subscriber.
  absl::Status Publish(const bus::InterRoleCommunicationEvent& event) override {
    return fan_out_.Tell(event);
  }

  // As FanOut::Subscribe.
  absl::StatusOr<std::unique_ptr<Subscription>> Subscribe(Subscriber subscriber) override {
    return fan_out_.Subscribe(std::move(subscriber));
  }

 private:
  bus::FanOut fan_out_;
};

// LocalHeartbeatBus: the multicast of heartbeats within one process. All subscribers have received
// a heartbeat when Publish returns.

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
