// NatsHeartbeatBus: the multicast of heartbeats between processes, over core NATS: a
// muster.v1.Heartbeat on the subject
//
//   muster.heartbeat.<role>.<instance>      role: initiator, processor, controller, scaling_agent
//
// The payload alone says whose it is; the subject is there for servers to filter by, and to let an
// account send only its own. The instance is written as a token (nats/subject.h). Nothing is
// stored; who is not connected misses it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/bus/heartbeat_bus.h"
#include "muster/bus/heartbeat_fan_out.h"
#include "muster/nats/connection.h"
#include "muster/nats/hearing.h"

namespace muster::bus::nats {

std::string SubjectOf(const v1::InstanceInfo& instance);

// Thread-safe. Subscriptions may outlive the bus; the connection must.
class NatsHeartbeatBus final : public bus::HeartbeatBus {
 public:
  // `connection` is not owned.
  explicit NatsHeartbeatBus(muster::nats::Connection* connection);
  // Waits for a subscriber that is running.
  ~NatsHeartbeatBus() override = default;

  // Waits until the server has it, at most kHeartbeatPublishTimeout: while there is no connection
  // heartbeats are lost, rather than kept and told when they are no longer true. Unavailable: the
  // server is not known to have it. InvalidArgument: longer than a heartbeat may be.
  absl::Status Publish(const v1::Heartbeat& heartbeat) override;

  // As base::FanOut::Subscribe; subscribers run on a thread of the connection. A new one hears
  // whatever any process publishes from now on, or, while there is no connection, as soon as there
  // is one.
  absl::StatusOr<std::unique_ptr<Subscription>> Subscribe(Subscriber subscriber) override;

  // Asks the server: a connection to one that hangs looks sound for up to half a minute.
  bool CanReceive() override;

  // Messages on the subjects of heartbeats that were none.
  int64_t malformed() const { return subscription_.malformed(); }

 private:
  absl::Status OnMessage(const muster::nats::Incoming& message);

  muster::nats::Connection* const connection_;  // not owned
  bus::HeartbeatFanOut fan_out_;
  muster::nats::LazySubscription subscription_;  // tells fan_out_
};

}  // namespace muster::bus::nats
