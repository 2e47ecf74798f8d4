// SPDX-License-Identifier: Apache-2.0

// NatsTriggerBus, NatsHeartbeatBus: the multicast between processes, over core NATS.
//
// An event travels as a muster.v1.InterRoleCommunicationEvent on the subject
//
//   muster.trigger.<account>.<queue>      work was put into the queue
//   muster.event.<kind>                   job_changed, batch_counted, batch_cancelled or
//                                         cancel_acknowledged
//   muster.release.<release>              a release was released
//
// Receivers read only the payload. The subject exists so that servers can filter by it, and can
// limit an account to its own events. A release counts only on the subject of that release: a user
// that may publish there may release. Account, queue and release are written as tokens
// (nats/names.h).
//
// Installations that share a server share these subjects, whose names the servers' permissions
// have. So each message says of which installation it is, and receivers drop those of others: their
// jobs and batches have the same names and numbers. A message that does not say so is of an earlier
// muster, and counts; an installation may be upgraded service by service.
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

// Patterns that match the subjects of all events.
inline constexpr const char* kEventSubjects[] = {"muster.trigger.>", "muster.event.*",
                                                 "muster.release.*"};

std::string SubjectOf(const bus::InterRoleCommunicationEvent& event);
// `installation` is left out of a trigger: it names the account of its queue, which no two
// installations share.
std::string EncodeEvent(const bus::InterRoleCommunicationEvent& event,
                        absl::string_view installation = "");

// InvalidArgument: not an event, or an event with an unknown payload.
absl::StatusOr<bus::InterRoleCommunicationEvent> DecodeEvent(absl::string_view bytes);

// NatsTriggerBus: the multicast between processes, over core NATS. It uses no queue group: every
// subscriber of every process receives every event. Nothing is stored; a disconnected process
// misses events.
//
// Each process receives all triggers, and its listeners select their own: an event is a hundred
// bytes and comes once for a whole batch of messages, whereas a filter would have to be set anew on
// the server whenever a listener comes or goes. If there are ever so many queues that this costs
// too much, the subjects allow the server to filter (SubjectOf).

// Thread-safe. Subscriptions may outlive the bus; the connection must.
class NatsTriggerBus final : public bus::TriggerBus {
 public:
  // `connection` is not owned. `installation` as in v1::InstanceInfo; empty: events of this bus say
  // of none, and it hears those of all.
  explicit NatsTriggerBus(muster::nats::Connection* connection, std::string installation = "");
  // Waits for a running subscriber to return.
  ~NatsTriggerBus() override = default;

  // Waits until the server has the event, at most kTriggerPublishTimeout. Unavailable: the server
  // has not confirmed it. InvalidArgument: NATS does not accept the event.
  absl::Status Publish(const bus::InterRoleCommunicationEvent& event) override;

  // As FanOut::Subscribe; subscribers run on a thread of the connection. A new subscriber receives
  // all events that any process publishes from now on or, without a connection, from when there is
  // one. It may also receive events published just before.
  absl::StatusOr<std::unique_ptr<Subscription>> Subscribe(Subscriber subscriber) override;

  // Number of messages on the subjects of triggers that were not valid events.
  int64_t malformed() const { return subscription_.malformed(); }

 private:
  absl::Status OnMessage(const muster::nats::Incoming& message);

  muster::nats::Connection* const connection_;  // not owned
  const std::string installation_;
  bus::FanOut fan_out_;
  muster::nats::LazySubscription subscription_;  // tells fan_out_
};

// NatsHeartbeatBus: the multicast of heartbeats between processes, over core NATS. A heartbeat
// travels as a muster.v1.Heartbeat on the subject
//
//   muster.heartbeat.<role>.<instance>      role: initiator, processor, controller, scaling_agent
//
// Receivers read only the payload. The subject exists so that servers can filter by it, and can
// limit an account to sending its own heartbeats. The instance is written as a token
// (nats/names.h). Nothing is stored; a disconnected process misses heartbeats.

std::string SubjectOf(const v1::InstanceInfo& instance);

// Thread-safe. Subscriptions may outlive the bus; the connection must.
class NatsHeartbeatBus final : public bus::HeartbeatBus {
 public:
  // As NatsTriggerBus.
  explicit NatsHeartbeatBus(muster::nats::Connection* connection, std::string installation = "");
  // Waits for a running subscriber to return.
  ~NatsHeartbeatBus() override = default;

  // Waits until the server has the heartbeat, at most kHeartbeatPublishTimeout. Without a
  // connection heartbeats are lost, because a delayed one would no longer be true. Unavailable: the
  // server has not confirmed it. InvalidArgument: the heartbeat is too long.
  absl::Status Publish(const v1::Heartbeat& heartbeat) override;

  // As base::FanOut::Subscribe; subscribers run on a thread of the connection. A new subscriber
  // receives all heartbeats that any process publishes from now on or, without a connection, from
  // when there is one.
  absl::StatusOr<std::unique_ptr<Subscription>> Subscribe(Subscriber subscriber) override;

  // Asks the server, because a connection to a hanging server looks sound for up to half a minute.
  bool CanReceive() override;

  // Number of messages on the subjects of heartbeats that were not valid heartbeats.
  int64_t malformed() const { return subscription_.malformed(); }

 private:
  absl::Status OnMessage(const muster::nats::Incoming& message);

  muster::nats::Connection* const connection_;  // not owned
  const std::string installation_;
  bus::HeartbeatFanOut fan_out_;
  muster::nats::LazySubscription subscription_;  // tells fan_out_
};

}  // namespace muster::bus::nats
