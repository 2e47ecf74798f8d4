// NatsTriggerBus: the multicast between processes, over core NATS. No queue group: every subscriber
// of every process hears every event. Nothing is stored; who is not connected misses it.
//
// Each process hears all triggers and leaves it to its listeners to tell theirs from the others: an
// event is a hundred bytes and comes once for a whole batch of messages, and a filter would have to
// be set anew on the server whenever a listener comes or goes. Should there ever be so many queues
// that this costs, the subjects are laid out for the server to filter (event_codec.h).
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/bus/fan_out.h"
#include "muster/bus/trigger_bus.h"
#include "muster/nats/connection.h"
#include "muster/nats/hearing.h"

namespace muster::bus::nats {

// Thread-safe. Subscriptions may outlive the bus; the connection must.
class NatsTriggerBus final : public bus::TriggerBus {
 public:
  // `connection` is not owned.
  explicit NatsTriggerBus(muster::nats::Connection* connection);
  // Waits for a subscriber that is running.
  ~NatsTriggerBus() override = default;

  // Waits until the server has the event, at most kTriggerPublishTimeout. Unavailable: it is not
  // known to have it. InvalidArgument: an event that NATS does not take.
  absl::Status Publish(const bus::InterRoleCommunicationEvent& event) override;

  // As FanOut::Subscribe; subscribers run on a thread of the connection. A new one hears whatever
  // any process publishes from now on, or, while there is no connection, as soon as there is one.
  // It may also hear what was published just before.
  absl::StatusOr<std::unique_ptr<Subscription>> Subscribe(Subscriber subscriber) override;

  // Messages on the subjects of triggers that were none.
  int64_t malformed() const { return subscription_.malformed(); }

 private:
  absl::Status OnMessage(const muster::nats::Incoming& message);

  muster::nats::Connection* const connection_;  // not owned
  bus::FanOut fan_out_;
  muster::nats::LazySubscription subscription_;  // tells fan_out_
};

}  // namespace muster::bus::nats
