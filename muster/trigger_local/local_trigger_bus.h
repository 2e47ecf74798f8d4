// LocalTriggerBus: the multicast within one process.
//
// Publish runs the subscribers itself, one after the other and one publisher at a time. So an event
// has been heard when Publish returns, nothing is ever queued, and no two subscribers run at once,
// which is why one may end another's subscription without waiting for it.
#pragma once

#include <memory>

#include "muster/trigger/trigger_bus.h"

namespace muster::trigger_local {

// Thread-safe. Subscriptions may outlive the bus.
class LocalTriggerBus final : public trigger::TriggerBus {
 public:
  LocalTriggerBus();
  ~LocalTriggerBus() override;

  // FailedPrecondition when called by a subscriber.
  absl::Status Publish(const trigger::InterRoleCommunicationEvent& event) override;

  // ResourceExhausted above kMaxSubscriptions. A subscriber may call it; the new one does not hear
  // the event that is under way.
  absl::StatusOr<std::unique_ptr<Subscription>> Subscribe(Subscriber subscriber) override;

 private:
  class Hub;
  class HubSubscription;

  // Shared with the subscriptions, which may outlive the bus.
  const std::shared_ptr<Hub> hub_;
};

}  // namespace muster::trigger_local
