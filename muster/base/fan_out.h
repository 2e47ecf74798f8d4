// SPDX-License-Identifier: Apache-2.0

// FanOut: passes each event of one process to each subscriber; buses are built on it.
//
// Subscribers run one after the other, for one event at a time. No two subscribers run at once, so
// a subscriber may end the subscription of another one without waiting for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
#include "muster/base/mutex.h"
#include "muster/base/status.h"

namespace muster::base {

// `Subscription` is the bus's abstract class, which ends a subscription when it is destroyed. When
// its destructor returns, the subscriber is not running and never runs again; so it must not be
// destroyed from within its own subscriber.
//
// Thread-safe. Subscriptions may outlive it.
template <typename Event, typename Subscription>
class FanOut {
 public:
  using Subscriber = std::function<void(const Event&)>;

  explicit FanOut(int max_subscriptions) : hub_(std::make_shared<Hub>(max_subscriptions)) {}

  // Runs the subscribers on the calling thread; each of them has returned when Tell returns.
  // FailedPrecondition when a subscriber calls it.
  absl::Status Tell(const Event& event) { return hub_->Tell(event); }

  // InvalidArgument: not callable. ResourceExhausted: max_subscriptions are reached. A subscriber
  // may call it; the new subscriber does not get the event that is under way.
  absl::StatusOr<std::unique_ptr<Subscription>> Subscribe(Subscriber subscriber) {
    if (!subscriber) return absl::InvalidArgumentError("a subscriber must be callable");
    MUSTER_ASSIGN_OR_RETURN(const uint64_t id, hub_->Add(std::move(subscriber)));
    return std::make_unique<HubSubscription>(hub_, id);
  }

 private:
  class Hub;

  class HubSubscription final : public Subscription {
   public:
    HubSubscription(std::shared_ptr<Hub> hub, uint64_t id) : hub_(std::move(hub)), id_(id) {}
    ~HubSubscription() override { hub_->Remove(id_); }

   private:
    const std::shared_ptr<Hub> hub_;
    const uint64_t id_;
  };

  // Shared with the subscriptions, which may outlive the bus.
  const std::shared_ptr<Hub> hub_;
};

// The subscribers, and which of them is running now. Thread-safe.
template <typename Event, typename Subscription>
class FanOut<Event, Subscription>::Hub {
 public:
  explicit Hub(int max_subscriptions) : max_subscriptions_(max_subscriptions) {}

  absl::Status Tell(const Event& event) ABSL_LOCKS_EXCLUDED(mu_) {
    const std::thread::id self = std::this_thread::get_id();
    MutexLock lock(&mu_);
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

  absl::StatusOr<uint64_t> Add(Subscriber subscriber) ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(&mu_);
    if (subscribers_.size() >= static_cast<size_t>(max_subscriptions_)) {
      return absl::ResourceExhaustedError(
          absl::StrCat("the bus has ", max_subscriptions_, " subscriptions already"));
    }
    subscribers_.emplace(++last_id_, std::make_shared<const Subscriber>(std::move(subscriber)));
    return last_id_;
  }

  // When it returns, the subscriber does not run and never will.
  void Remove(uint64_t id) ABSL_LOCKS_EXCLUDED(mu_) {
    std::shared_ptr<const Subscriber> removed;  // dies after the lock is let go
    MutexLock lock(&mu_);
    const auto it = subscribers_.find(id);
    MUSTER_CHECK(it != subscribers_.end(), "subscription ", id, " of ", subscribers_.size());
    removed = std::move(it->second);
    subscribers_.erase(it);
    // On the delivering thread it is another subscriber that runs: there is nothing to wait for.
    const std::thread::id self = std::this_thread::get_id();
    while (running_ == id && teller_ != self) changed_.Wait(&mu_);
  }

 private:
  void DeliverLocked(const Event& event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    const uint64_t last = last_id_;
    // Looks up by id instead of holding an iterator: subscribers come and go while one of them
    // runs.
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

  const int max_subscriptions_;
  Mutex mu_;
  CondVar changed_;
  // Shared with DeliverLocked while it runs a subscriber, because Remove may erase that one
  // meanwhile.
  std::map<uint64_t, std::shared_ptr<const Subscriber>> subscribers_ ABSL_GUARDED_BY(mu_);
  uint64_t last_id_ ABSL_GUARDED_BY(mu_) = 0;
  std::thread::id teller_ ABSL_GUARDED_BY(mu_);
  uint64_t running_ ABSL_GUARDED_BY(mu_) = 0;  // id of the subscriber that runs; 0 = none
};

}  // namespace muster::base
