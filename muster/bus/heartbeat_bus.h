// The bounds of the heartbeat seam, each with its reason.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/v1/heartbeat.pb.h"

namespace muster::bus {

// About 200 bytes for each job that its instance works for: some hundreds of jobs.
inline constexpr size_t kMaxHeartbeatBytes = size_t{64} << 10;

// In one process: its roster, and whoever else wants to know.
inline constexpr int kMaxHeartbeatSubscriptions = 256;

// HeartbeatBus: the seam of the multicast by which role instances know of each other. Best effort,
// at most once: who misses a heartbeat knows a little less for a little while.

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

  // To every subscriber, those of the publisher's own process included. OK says that it left, not
  // that anybody heard it.
  virtual absl::Status Publish(const v1::Heartbeat& heartbeat) = 0;

  virtual absl::StatusOr<std::unique_ptr<Subscription>> Subscribe(Subscriber subscriber) = 0;

  // False: it has lost its connection, or whoever carries its messages does not answer; nobody is
  // heard until that is mended. Takes as long as the answer; some seconds at most.
  virtual bool CanReceive() { return true; }
};

}  // namespace muster::bus
