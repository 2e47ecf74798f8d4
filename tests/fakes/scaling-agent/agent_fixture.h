// SPDX-License-Identifier: Apache-2.0

// What tests of the scaling agent share: hand-made heartbeats, and an actuator and queues that fail
// on command.
#pragma once

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "muster/actuator/actuator.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/base/proto_time.h"
#include "muster/bus/roster.h"
#include "muster/os/temp_dir.h"
#include "muster/queue/rocksdb/rocksdb_queue_store.h"
#include "muster/queue/store_decorators.h"
#include "services/scaling-agent/worker_load.h"

namespace muster::scaling_agent {

inline constexpr char kTestAccount[] = "acme";

// A processor with two threads, which works on "in-0".
inline v1::Heartbeat BeatOf(const std::string& instance, uint64_t sequence) {
  v1::Heartbeat beat;
  beat.mutable_instance()->set_role(v1::ROLE_PROCESSOR);
  beat.mutable_instance()->set_instance(instance);
  beat.set_sequence(sequence);
  v1::JobLoad* const job = beat.add_jobs();
  job->set_job("in");
  job->set_threads_max(2);
  job->add_partitions()->set_queue("acme/in-0");
  return beat;
}

// The same at work: `rate` items per second, half of its time busy.
inline v1::Heartbeat BusyBeatOf(const std::string& instance, uint64_t sequence, double rate) {
  v1::Heartbeat beat = BeatOf(instance, sequence);
  v1::JobLoad* const job = beat.mutable_jobs(0);
  job->set_threads(2);
  job->set_threads_busy(1);
  job->set_busy_share(0.5);
  job->set_items_per_second(rate);
  job->set_attempts(10);
  *job->mutable_service_time()->mutable_mean() = base::ToProto(absl::Milliseconds(50));
  job->mutable_partitions(0)->set_unsettled(3);
  beat.set_cpu_cores(0.4);
  return beat;
}

// A gate for other threads: while it is shut, callers of Pass wait.
class Barrier {
 public:
  void Shut() {
    base::MutexLock lock(&mu_);
    is_shut_ = true;
  }
  void Open() {
    base::MutexLock lock(&mu_);
    is_shut_ = false;
    changed_.NotifyAll();
  }
  void Pass() {
    base::MutexLock lock(&mu_);
    while (is_shut_) {
      is_waited_at_ = true;
      changed_.NotifyAll();
      changed_.Wait(&mu_);
    }
  }
  bool IsWaitedAt() {
    base::MutexLock lock(&mu_);
    return is_shut_ && is_waited_at_;
  }
  void AwaitSomebody() {
    base::MutexLock lock(&mu_);
    while (!is_waited_at_) changed_.Wait(&mu_);
  }

 private:
  base::Mutex mu_;
  base::CondVar changed_;
  bool is_shut_ ABSL_GUARDED_BY(mu_) = false;
  bool is_waited_at_ ABSL_GUARDED_BY(mu_) = false;
};

// Thread-safe. Shows the state that the test sets, and notes each order.
class FakeActuator final : public actuator::Actuator {
 public:
  explicit FakeActuator(std::string kind = "process") : kind_(std::move(kind)) {}

  std::string_view kind() const override { return kind_; }
  absl::StatusOr<actuator::TargetState> Observe(std::string_view) override {
    barrier_.Pass();
    base::MutexLock lock(&mu_);
    if (!observing_.ok()) return observing_;
    return state_;
  }
  absl::StatusOr<actuator::Outcome> Apply(const actuator::Order& order) override {
    base::MutexLock lock(&mu_);
    orders_.push_back(order);
    if (!applying_.ok()) return applying_;
    actuator::Outcome outcome{state_.wanted, std::min(order.replicas, most_), "done"};
    if (obeys_) state_.wanted = outcome.after;
    return outcome;
  }

  void FailObserve(absl::Status status) {
    base::MutexLock lock(&mu_);
    observing_ = std::move(status);
  }
  void FailApply(absl::Status status) {
    base::MutexLock lock(&mu_);
    applying_ = std::move(status);
  }
  void SetState(actuator::TargetState state) {
    base::MutexLock lock(&mu_);
    state_ = std::move(state);
  }
  // Observe blocks while the barrier is shut.
  Barrier* barrier() { return &barrier_; }
  // Apply makes at most this many replicas.
  void HaveAtMost(int replicas) {
    base::MutexLock lock(&mu_);
    most_ = replicas;
  }
  // Apply answers, and changes nothing.
  void IgnoreOrders() {
    base::MutexLock lock(&mu_);
    obeys_ = false;
  }
  // The replicas of all orders so far.
  std::vector<int> ordered() const {
    base::MutexLock lock(&mu_);
    std::vector<int> replicas;
    for (const actuator::Order& order : orders_) replicas.push_back(order.replicas);
    return replicas;
  }
  std::vector<actuator::Order> orders() const {
    base::MutexLock lock(&mu_);
    return orders_;
  }

 private:
  const std::string kind_;
  Barrier barrier_;
  mutable base::Mutex mu_;
  absl::Status observing_ ABSL_GUARDED_BY(mu_);
  absl::Status applying_ ABSL_GUARDED_BY(mu_);
  actuator::TargetState state_ ABSL_GUARDED_BY(mu_);
  int most_ ABSL_GUARDED_BY(mu_) = std::numeric_limits<int>::max();
  bool obeys_ ABSL_GUARDED_BY(mu_) = true;
  std::vector<actuator::Order> orders_ ABSL_GUARDED_BY(mu_);
};

// A real store with statistics that fail on command.
class FragileQueues final : public queue::InterceptedStore {
 public:
  explicit FragileQueues(queue::QueueStore* behind) : InterceptedStore(behind) {}

  void Fail(absl::Status status) {
    base::MutexLock lock(&mu_);
    failure_ = std::move(status);
  }
  // Calls of Stats block while the barrier is shut.
  Barrier* barrier() { return &barrier_; }

 protected:
  absl::Status Before(queue::Verb verb, const queue::QueueId&) override {
    if (verb == queue::Verb::kStats) barrier_.Pass();
    base::MutexLock lock(&mu_);
    return verb == queue::Verb::kStats ? failure_ : absl::OkStatus();
  }

 private:
  Barrier barrier_;
  base::Mutex mu_;
  absl::Status failure_ ABSL_GUARDED_BY(mu_);
};

// Queues in a folder of their own.
class TestQueues {
 public:
  explicit TestQueues(base::Clock* clock) {
    queue::rocksdb::Options options;
    options.clock = clock;
    auto opened = queue::rocksdb::RocksDbQueueStore::Open(dir_ / "queues", options);
    EXPECT_TRUE(opened.ok()) << opened.status();
    real_ = *std::move(opened);
    store_ = std::make_unique<FragileQueues>(real_.get());
  }

  FragileQueues* store() { return store_.get(); }

  void Create(const std::string& name) {
    EXPECT_TRUE(real_->CreateQueue({kTestAccount, name}, {}).ok());
  }
  void Put(const std::string& name, int count) {
    queue::NewMessage message;
    message.body = "x";
    const std::vector<queue::NewMessage> messages(static_cast<size_t>(count), message);
    const auto put = real_->Put({kTestAccount, name}, messages);
    EXPECT_TRUE(put.ok()) << put.status();
  }

 private:
  const os::TempDir dir_;
  std::unique_ptr<queue::rocksdb::RocksDbQueueStore> real_;
  std::unique_ptr<FragileQueues> store_;
};

}  // namespace muster::scaling_agent
