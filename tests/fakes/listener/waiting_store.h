// SPDX-License-Identifier: Apache-2.0

// WaitingStore: in front of a MemoryStore, an engine that can wait. A message arrives when the test
// says so.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "muster/base/mutex.h"
#include "muster/queue/queue_store.h"
#include "muster/queue/store_decorators.h"

namespace muster::listener::testing {

// Thread-safe.
class WaitingStore final : public queue::InterceptedStore {
 public:
  // `behind` is not owned.
  explicit WaitingStore(queue::QueueStore* behind)
      : InterceptedStore(behind), traits_(behind->traits()) {
    traits_.long_poll = true;
    traits_.exact_stats = false;
  }

  const queue::Traits& traits() const override { return traits_; }

  absl::StatusOr<std::unique_ptr<Wait>> AwaitMessage(const queue::QueueId& queue,
                                                     absl::Duration patience,
                                                     TakeMessage take) override {
    base::MutexLock lock(&mu_);
    ++begun_;
    changed_.NotifyAll();
    if (!refusal_.ok()) return refusal_;
    waits_[++last_] = {queue, patience, std::move(take)};
    return std::make_unique<Handle>(this, last_);
  }

  absl::StatusOr<queue::QueueStats> Stats(const queue::QueueId& queue) override {
    auto stats = InterceptedStore::Stats(queue);
    base::MutexLock lock(&mu_);
    if (stats.ok()) stats->waits = others_ + Count(queue);
    return stats;
  }

  // Passes the first ready message of the queue to the oldest wait. False: it was not taken, and is
  // ready again; or there is no wait, or no message.
  bool Deliver(const queue::QueueId& queue) {
    return End(queue, [&](const TakeMessage& take) {
      const auto messages = Receive(queue, {1, absl::Minutes(10)}).value();
      if (messages.empty()) return false;
      if (take(messages.front())) return true;
      queue::UpdateRequest back;
      back.receipt = messages.front().receipt;
      EXPECT_TRUE(Update(queue, {back}).ok());
      return false;
    });
  }
  // Ends the oldest wait of the queue, or does nothing.
  void End(const queue::QueueId& queue, const absl::Status& why) {
    End(queue, [&](const TakeMessage& take) { return take(why); });
  }

  // The next calls are refused.
  void Refuse(absl::Status status) {
    base::MutexLock lock(&mu_);
    refusal_ = std::move(status);
  }
  // What other processes wait with, by the statistics.
  void SetOthers(int64_t waits) {
    base::MutexLock lock(&mu_);
    others_ = waits;
  }

  int begun() const {
    base::MutexLock lock(&mu_);
    return begun_;
  }
  int64_t open(const queue::QueueId& queue) const {
    base::MutexLock lock(&mu_);
    return Count(queue);
  }
  size_t open() const {
    base::MutexLock lock(&mu_);
    return waits_.size();
  }
  void AwaitBegun(int n) const {
    base::MutexLock lock(&mu_);
    while (begun_ < n) changed_.Wait(&mu_);
  }
  absl::Duration patience() const {
    base::MutexLock lock(&mu_);
    return waits_.begin()->second.patience;
  }

 private:
  struct Waiting {
    queue::QueueId queue;
    absl::Duration patience;
    TakeMessage take;
  };

  class Handle final : public Wait {
   public:
    Handle(WaitingStore* store, int id) : store_(store), id_(id) {}
    ~Handle() override {
      base::MutexLock lock(&store_->mu_);
      store_->waits_.erase(id_);
      while (store_->running_ == id_) store_->changed_.Wait(&store_->mu_);
    }

   private:
    WaitingStore* const store_;
    const int id_;
  };

  int64_t Count(const queue::QueueId& queue) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return std::count_if(waits_.begin(), waits_.end(),
                         [&](const auto& wait) { return wait.second.queue == queue; });
  }

  template <typename Act>
  bool End(const queue::QueueId& queue, Act act) {
    std::optional<Waiting> waiting;
    {
      base::MutexLock lock(&mu_);
      const auto found = std::find_if(waits_.begin(), waits_.end(),
                                      [&](const auto& wait) { return wait.second.queue == queue; });
      if (found == waits_.end()) return false;
      running_ = found->first;
      waiting = std::move(found->second);
      waits_.erase(found);
    }
    const bool taken = act(waiting->take);
    base::MutexLock lock(&mu_);
    running_ = 0;
    changed_.NotifyAll();
    return taken;
  }

  queue::Traits traits_;
  mutable base::Mutex mu_;
  mutable base::CondVar changed_;
  std::map<int, Waiting> waits_ ABSL_GUARDED_BY(mu_);  // the oldest first
  int last_ ABSL_GUARDED_BY(mu_) = 0;
  int running_ ABSL_GUARDED_BY(mu_) = 0;
  int begun_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t others_ ABSL_GUARDED_BY(mu_) = 0;
  absl::Status refusal_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::listener::testing
