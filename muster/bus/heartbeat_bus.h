// SPDX-License-Identifier: Apache-2.0

// HeartbeatBus: the seam of the multicast by which role instances learn of each other.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/v1/heartbeat.pb.h"

namespace muster::bus {

// Room for some hundreds of jobs, at about 200 bytes for each job that the instance works for.
inline constexpr size_t kMaxHeartbeatBytes = size_t{64} << 10;
// In memory. Real ones take up to ten times their bytes, as partitions without work do; one of
// empty parts takes fifty times as much.
inline constexpr size_t kMaxHeartbeatSpace = 16 * kMaxHeartbeatBytes;

// Limit in one process: its roster, and some other subscribers.
inline constexpr int kMaxHeartbeatSubscriptions = 256;

// Heartbeats are best effort, at most once: an instance that misses a heartbeat knows a little less
// for a little while.

// Thread-safe.
class HeartbeatBus {
 public:
  // Called on a thread of the bus or of the publisher: be quick, do not block, do not publish.
  using Subscriber = std::function<void(const v1::Heartbeat&)>;

  // Ends the subscription when destroyed. When the destructor returns, the subscriber is not
  // running and never runs again; so do not destroy it from within the subscriber.
  class Subscription {
   public:
    virtual ~Subscription() = default;
  };

  virtual ~HeartbeatBus() = default;

  // Sends `heartbeat` to every subscriber, also to those of the own process. OK says that it was
  // sent, not that a subscriber received it.
  virtual absl::Status Publish(const v1::Heartbeat& heartbeat) = 0;

  virtual absl::StatusOr<std::unique_ptr<Subscription>> Subscribe(Subscriber subscriber) = 0;

  // False: the bus has lost its connection, or its server does not answer; no heartbeat arrives
  // until that is repaired. Takes as long as the answer; some seconds at most.
  virtual bool CanReceive() { return true; }
};

}  // namespace muster::bus
