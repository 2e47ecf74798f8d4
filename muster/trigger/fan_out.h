// FanOut: tells each subscriber of one process of each event, for a bus to be made of.
//
// One after the other and one event at a time: no two subscribers run at once, which is why one may
// end another's subscription without waiting for it.
#pragma once

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/trigger/trigger_bus.h"

namespace muster::trigger {

// Thread-safe. Subscriptions may outlive it.
class FanOut {
 public:
  FanOut();
  ~FanOut();

  // Runs the subscribers on the calling thread; they have heard `event` when it returns.
  // FailedPrecondition when a subscriber calls it.
  absl::Status Tell(const InterRoleCommunicationEvent& event);

  // InvalidArgument: not callable. ResourceExhausted above kMaxSubscriptions. A subscriber may call
  // it; the new one does not hear the event that is under way.
  absl::StatusOr<std::unique_ptr<TriggerBus::Subscription>> Subscribe(
      TriggerBus::Subscriber subscriber);

 private:
  class Hub;
  class HubSubscription;

  // Shared with the subscriptions, which may outlive the bus.
  const std::shared_ptr<Hub> hub_;
};

}  // namespace muster::trigger
