#include "muster/trigger/fan_out.h"

#include <cstdint>
#include <map>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/mutex.h"
#include "muster/base/status_macros.h"
#include "muster/trigger/limits.h"

namespace muster::trigger {

// Who is subscribed, and who is being told right now. Thread-safe.
class FanOut::Hub {
 public:
  absl::Status Tell(const InterRoleCommunicationEvent& event) {
    const std::thread::id self = std::this_thread::get_id();
    base::MutexLock lock(&mu_);
    if (teller_ == self) {
      return absl::FailedPreconditionError("a subscriber of the bus must not publish");
    }
    while (teller_ != std::thread::id()) changed_.Wait(&mu_);
    teller_ = self;
    DeliverLocked(event);
    teller_ = std::thread::id();
    changed_.NotifyAll();
    return absl::OkStatus();
  }

  absl::StatusOr<uint64_t> Add(TriggerBus::Subscriber subscriber) {
    base::MutexLock lock(&mu_);
    if (subscribers_.size() >= kMaxSubscriptions) {
      return absl::ResourceExhaustedError(
          absl::StrCat("the bus has ", kMaxSubscriptions, " subscriptions already"));
    }
    subscribers_.emplace(++last_id_,
                         std::make_shared<const TriggerBus::Subscriber>(std::move(subscriber)));
    return last_id_;
  }

  // When it returns, the subscriber does not run and never will.
  void Remove(uint64_t id) {
    std::shared_ptr<const TriggerBus::Subscriber> removed;  // dies after the lock is let go
    base::MutexLock lock(&mu_);
    const auto it = subscribers_.find(id);
    removed = std::move(it->second);
    subscribers_.erase(it);
    // On the teller's own thread another subscriber is running: no need to wait for this one.
    const std::thread::id self = std::this_thread::get_id();
    while (running_ == id && teller_ != self) changed_.Wait(&mu_);
  }

 private:
  void DeliverLocked(const InterRoleCommunicationEvent& event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    const uint64_t last = last_id_;
    // By id and not by iterator: subscribers come and go while one of them runs.
    for (auto it = subscribers_.begin(); it != subscribers_.end() && it->first <= last;
         it = subscribers_.upper_bound(running_)) {
      running_ = it->first;
      std::shared_ptr<const TriggerBus::Subscriber> subscriber = it->second;
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
  // Shared with Tell while it runs one, as that may be removed meanwhile.
  std::map<uint64_t, std::shared_ptr<const TriggerBus::Subscriber>> subscribers_
      ABSL_GUARDED_BY(mu_);
  uint64_t last_id_ ABSL_GUARDED_BY(mu_) = 0;
  std::thread::id teller_ ABSL_GUARDED_BY(mu_);
  uint64_t running_ ABSL_GUARDED_BY(mu_) = 0;  // id of the subscriber that runs; 0 = none
};

class FanOut::HubSubscription final : public TriggerBus::Subscription {
 public:
  HubSubscription(std::shared_ptr<Hub> hub, uint64_t id) : hub_(std::move(hub)), id_(id) {}
  ~HubSubscription() override { hub_->Remove(id_); }

 private:
  const std::shared_ptr<Hub> hub_;
  const uint64_t id_;
};

FanOut::FanOut() : hub_(std::make_shared<Hub>()) {}
FanOut::~FanOut() = default;

absl::Status FanOut::Tell(const InterRoleCommunicationEvent& event) { return hub_->Tell(event); }

absl::StatusOr<std::unique_ptr<TriggerBus::Subscription>> FanOut::Subscribe(
    TriggerBus::Subscriber subscriber) {
  if (!subscriber) return absl::InvalidArgumentError("a subscriber must be callable");
  MUSTER_ASSIGN_OR_RETURN(const uint64_t id, hub_->Add(std::move(subscriber)));
  return std::make_unique<HubSubscription>(hub_, id);
}

}  // namespace muster::trigger
