// How an event travels over NATS: a muster.v1.InterRoleCommunicationEvent on the subject
//
//   muster.trigger.<account>.<queue>      work was put into the queue
//   muster.event.<kind>                   anything else: job_changed, batch_counted,
//   batch_cancelled
//
// The payload alone says what the event is; the subject is there for servers to filter by, and to
// let an account only hear its own. Account and queue are written as tokens (nats/subject.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "muster/bus/fan_out.h"
#include "muster/bus/heartbeat_bus.h"
#include "muster/bus/trigger_bus.h"
#include "muster/nats/connection.h"
#include "muster/nats/lazy_subscription.h"

namespace muster::bus::nats {

// What the subjects of all events match.
inline constexpr const char* kEventSubjects[] = {"muster.trigger.>", "muster.event.*"};

std::string SubjectOf(const bus::InterRoleCommunicationEvent& event);
std::string EncodeEvent(const bus::InterRoleCommunicationEvent& event);

// InvalidArgument: no event, or one without a payload that we know.
absl::StatusOr<bus::InterRoleCommunicationEvent> DecodeEvent(absl::string_view bytes);

// NatsTriggerBus: the multicast between processes, over core NATS. No queue group: every subscriber
// of every process hears every event. Nothing is stored; who is not connected misses it.
//
// Each process hears all triggers and leaves it to its listeners to tell theirs from the others: an
// event is a hundred bytes and comes once for a whole batch of messages, and a filter would have to
// be set anew on the server whenever a listener comes or goes. Should there ever be so many queues
// that this costs, the subjects are laid out for the server to filter (event_codec.h).

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

// NatsHeartbeatBus: the multicast of heartbeats between processes, over core NATS: a
// muster.v1.Heartbeat on the subject
//
//   muster.heartbeat.<role>.<instance>      role: initiator, processor, controller, scaling_agent
//
// The payload alone says whose it is; the subject is there for servers to filter by, and to let an
// account send only its own. The instance is written as a token (nats/subject.h). Nothing is
// stored; who is not connected misses it.

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
