// TriggerSender: tells other listeners, by multicast, that work was put (req. 41, 45).
#pragma once

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/bus/trigger_bus.h"
#include "muster/listener/counters.h"
#include "muster/queue/queue_store.h"

namespace muster::listener {

// Thread-safe. Best effort: a trigger that cannot be sent costs latency only, and the listeners'
// safety checks make up for it.
class TriggerSender {
 public:
  // `bus` may be null: then nothing is sent. Neither pointer is owned.
  TriggerSender(bus::TriggerBus* bus, std::string instance, CounterSet* counters);

  // `wanted`: as in the event.
  void Send(const queue::QueueId& queue, int64_t messages, const std::string& wanted = "");

 private:
  bus::TriggerBus* const bus_;  // not owned
  const std::string instance_;
  CounterSet* const counters_;  // not owned
};

// A burst of puts into one queue, announced cheaply: at its first put, at its end, and now and then
// between, so that a reader that is quicker than the writer does not sleep through it.
// Not thread-safe: the settler's.
class BurstAnnouncer {
 public:
  BurstAnnouncer(queue::QueueId queue, TriggerSender* sender, base::Clock* clock);

  // `messages` were put.
  void OnPut(int64_t messages);
  // Nothing more to put for now.
  void OnIdle();

 private:
  void Announce();

  const queue::QueueId queue_;
  TriggerSender* const sender_;  // not owned
  base::Clock* const clock_;     // not owned
  bool in_burst_ = false;
  int64_t unannounced_ = 0;
  absl::Duration announced_at_ = absl::ZeroDuration();
};

}  // namespace muster::listener
