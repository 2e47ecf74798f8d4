// SPDX-License-Identifier: Apache-2.0

// TriggerBus: the seam of the multicast that wakes listeners. Best effort, at most
// once: a lost event costs latency, never correctness, because listeners keep a slow safety check.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <variant>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster::bus {

// Work was put into a queue.
struct CloudQueueWorkDetectedTriggerEvent {
  std::string storage_account;
  std::string queue_name;
  int64_t messages = 0;  // put
  // Not empty: what a worker must have for these messages. A worker without it put them back; other
  // workers without it need not come.
  std::string wanted = {};
};

// A job's definition was made, replaced or deleted.
struct JobChangedEvent {
  std::string job;
};

// Items of a batch were counted.
struct BatchCountedEvent {
  uint64_t batch = 0;
};

// A batch was given up on request.
struct BatchCancelledEvent {
  uint64_t batch = 0;
};

// The sender, a processor, has stopped working on a batch that was given up.
struct CancelAcknowledgedEvent {
  uint64_t batch = 0;
};

// A release was released (muster/release). Its record in the sync store says whether that is true.
struct ReleasedEvent {
  std::string release;
  int64_t epoch = 0;
};

// What travels between role instances; more payloads join the variant as they are needed.
struct InterRoleCommunicationEvent {
  std::string from;  // role instance id
  std::variant<CloudQueueWorkDetectedTriggerEvent, JobChangedEvent, BatchCountedEvent,
               BatchCancelledEvent, CancelAcknowledgedEvent, ReleasedEvent>
      payload;
};

// Thread-safe.
class TriggerBus {
 public:
  // Called on a thread of the bus or of the publisher: be quick, do not block, do not publish.
  using Subscriber = std::function<void(const InterRoleCommunicationEvent&)>;

  // Ends the subscription when destroyed. When the destructor returns, the subscriber is not
  // running and never runs again; so do not destroy it from within the subscriber.
  class Subscription {
   public:
    virtual ~Subscription() = default;
  };

  virtual ~TriggerBus() = default;

  // One-way multicast to every subscriber. OK says that the event was sent, not that a subscriber
  // received it.
  virtual absl::Status Publish(const InterRoleCommunicationEvent& event) = 0;

  virtual absl::StatusOr<std::unique_ptr<Subscription>> Subscribe(Subscriber subscriber) = 0;
};

// Makes and recognises the event "work was put into this queue". Account and queue are
// plain strings, because a bus does not depend on the queues.

// Returns the event that role instance `from` publishes after it put `messages` messages into
// `queue`.
InterRoleCommunicationEvent WorkDetected(absl::string_view from, absl::string_view account,
                                         absl::string_view queue, int64_t messages);

// Whether `event` says that there is work in `account`'s `queue`. Listeners ignore all other events
// (43).
bool IsFor(const InterRoleCommunicationEvent& event, absl::string_view account,
           absl::string_view queue);

}  // namespace muster::bus
