// SPDX-License-Identifier: Apache-2.0

// HolderWatch: has what a dead instance held given back, and wakes those who can work on it.
//
//   heard ──► silent for kSilentHolder ──► ReleaseHeldBy ──► done, until it is heard again
//                                             ▲     │ may live
//                                             └─────┘ every kAskAgain, until the roster forgets it
//
// All instances watch each other. While all are heard, the watch calls no store.
#pragma once

#include <map>
#include <string>
#include <thread>

#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/bus/roster.h"
#include "muster/bus/trigger_bus.h"
#include "muster/queue/queue_store.h"
#include "muster/telemetry/registry.h"

namespace muster::host {

// A bus::kHeartbeatInterval and a little more: one heartbeat is missing. That proves nothing; the
// store finds out.
inline constexpr absl::Duration kSilentHolder = absl::Milliseconds(2250);
inline constexpr absl::Duration kAskAgain = absl::Seconds(1);

// Thread-safe. Its end waits for the call that is under way.
class HolderWatch {
 public:
  // `self` is the name of this instance, and as such the sender of triggers. No pointer is owned.
  // `metrics` may be null: what is given back is not counted.
  HolderWatch(std::string self, bus::Roster* roster, queue::QueueStore* queues,
              bus::TriggerBus* bus, base::Clock* clock, telemetry::Registry* metrics = nullptr);
  HolderWatch(const HolderWatch&) = delete;
  HolderWatch& operator=(const HolderWatch&) = delete;

  // Starts the thread that calls Look. Call it once.
  void Start();

  // Asks for the instances that are silent and due. Returns how long the next look may wait. Used
  // by one thread at a time.
  absl::Duration Look();

 private:
  // Returns false when the instance may live.
  bool Release(const bus::Silence::Instance& silent);

  const std::string self_;
  bus::Roster* const roster_;        // not owned
  queue::QueueStore* const queues_;  // not owned
  bus::TriggerBus* const bus_;       // not owned
  base::Clock* const clock_;         // not owned
  const telemetry::Counter dead_holders_;
  const telemetry::Counters<1> messages_;
  // When each silent instance is asked for again. Bounded by the roster.
  std::map<std::string, absl::Duration> asks_at_;
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace muster::host
