#include "muster/trigger_local/local_trigger_bus.h"

#include <cstdint>
#include <map>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/mutex.h"
#include "muster/trigger/limits.h"

namespace muster::trigger_local {

using trigger::InterRoleCommunicationEvent;

// Who is subscribed, and who is being told right now. Thread-safe.
class LocalTriggerBus::Hub {
 public:
  absl::Status Publish(const InterRoleCommunicationEvent& event) {
    const std::thread::id self = std::this_thread::get_id();
    base::MutexLock lock(&mu_);
    if (publisher_ == self) {
      return absl::FailedPreconditionError("a subscriber of the bus must not publish");
    }
    while (publisher_ != std::thread::id()) changed_.Wait(&mu_);
    publisher_ = self;
    DeliverLocked(event);
    publisher_ = std::thread::id();
    changed_.NotifyAll();
    return absl::OkStatus();
  }

  absl::StatusOr<uint64_t> Add(Subscriber subscriber) {
    base::MutexLock lock(&mu_);
    if (subscribers_.size() >= trigger::kMaxSubscriptions) {
      return absl::ResourceExhaustedError(
          absl::StrCat("the bus has ", trigger::kMaxSubscriptions, " subscriptions already"));
    }
    subscribers_.emplace(++last_id_, std::make_shared<const Subscriber>(std::move(subscriber)));
    return last_id_;
  }

  // When it returns, the subscriber does not run and never will.
  void Remove(uint64_t id) {
    std::shared_ptr<const Subscriber> removed;  // dies after the lock is let go
    base::MutexLock lock(&mu_);
    const auto it = subscribers_.find(id);
    removed = std::move(it->second);
    subscribers_.erase(it);
    // On the publisher's own thread another subscriber is running: no need to wait for this one.
    const std::thread::id self = std::this_thread::get_id();
    while (running_ == id && publisher_ != self) changed_.Wait(&mu_);
  }

 private:
  void DeliverLocked(const InterRoleCommunicationEvent& event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    const uint64_t last = last_id_;
    // By id and not by iterator: subscribers come and go while one of them runs.
    for (auto it = subscribers_.begin(); it != subscribers_.end() && it->first <= last;
         it = subscribers_.upper_bound(running_)) {
      running_ = it->first;
      std::shared_ptr<const Subscriber> subscriber = it->second;
      mu_.Unlock();
      (*subscriber)(event);
      subscriber.reset();
      mu_.Lock();
      changed_.NotifyAll();
    }
    running_ = 0;
  }

  base::Mutex mu_;
  base::CondVar changed_;
  // Shared with Publish while it runs one, as that may be removed meanwhile.
  std::map<uint64_t, std::shared_ptr<const Subscriber>> subscribers_ ABSL_GUARDED_BY(mu_);
  uint64_t last_id_ ABSL_GUARDED_BY(mu_) = 0;
  std::thread::id publisher_ ABSL_GUARDED_BY(mu_);
  uint64_t running_ ABSL_GUARDED_BY(mu_) = 0;  // id of the subscriber that runs; 0 = none
};

class LocalTriggerBus::HubSubscription final : public Subscription {
 public:
  HubSubscription(std::shared_ptr<Hub> hub, uint64_t id) : hub_(std::move(hub)), id_(id) {}
  ~HubSubscription() override { hub_->Remove(id_); }

 private:
  const std::shared_ptr<Hub> hub_;
  const uint64_t id_;
};

LocalTriggerBus::LocalTriggerBus() : hub_(std::make_shared<Hub>()) {}
LocalTriggerBus::~LocalTriggerBus() = default;

absl::Status LocalTriggerBus::Publish(const InterRoleCommunicationEvent& event) {
  return hub_->Publish(event);
}

absl::StatusOr<std::unique_ptr<trigger::TriggerBus::Subscription>> LocalTriggerBus::Subscribe(
    Subscriber subscriber) {
  if (!subscriber) return absl::InvalidArgumentError("a subscriber must be callable");
  absl::StatusOr<uint64_t> id = hub_->Add(std::move(subscriber));
  if (!id.ok()) return id.status();
  return std::make_unique<HubSubscription>(hub_, *id);
}

}  // namespace muster::trigger_local
