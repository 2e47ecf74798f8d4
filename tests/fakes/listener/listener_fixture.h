// SPDX-License-Identifier: Apache-2.0

// The fixture of the listener tests: a queue in memory, a fake clock, a real local bus, and
// handlers that are lambdas.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/mutex.h"
#include "muster/bus/local/local_buses.h"
#include "muster/bus/trigger_bus.h"
#include "muster/listener/listener.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/base/let_others_run.h"
#include "tests/fakes/listener/memory_store.h"

namespace muster::listener {

using testing::MemoryStore;
using testing::Verb;

inline Settlement Ok(std::vector<std::string> outputs = {}) {
  Settlement settlement;
  settlement.kind = Settlement::Kind::kOk;
  for (std::string& output : outputs) {
    settlement.outputs.emplace_back().body = std::move(output);
  }
  return settlement;
}

inline Settlement Outcome(Settlement::Kind kind, absl::Duration delay = absl::ZeroDuration(),
                          std::string why = "because") {
  Settlement settlement;
  settlement.kind = kind;
  settlement.delay = delay;
  settlement.why = std::move(why);
  return settlement;
}

inline Settlement ForOthers(std::string wanted) {
  Settlement settlement = Outcome(Settlement::Kind::kDefer);
  settlement.wanted = std::move(wanted);
  return settlement;
}

// For tests about leases, which advance time step by step.
inline constexpr absl::Duration kShortLease = absl::Seconds(30);

class ListenerTest : public ::testing::Test {
 protected:
  using Handler = std::function<Settlement(Delivery&, DeliveryContext&)>;

  // Begins every delivery and settles it with the result of the handler.
  class ScriptedSubscriber final : public Subscriber {
   public:
    explicit ScriptedSubscriber(ListenerTest* test) : test_(test) { test_->CountSubscribers(1); }
    ~ScriptedSubscriber() override { test_->CountSubscribers(-1); }

    void OnMessages(absl::Span<Delivery> deliveries, DeliveryContext& context) override {
      for (Delivery& delivery : deliveries) {
        if (const absl::Status begun = context.Begin(delivery); !begun.ok()) {
          test_->Note(absl::StrCat("refused ", delivery.message->body));
          continue;
        }
        test_->Note(absl::StrCat(delivery.message->body, "#", delivery.attempt));
        context.Settle(delivery, test_->handler_(delivery, context));
      }
    }

    std::vector<queue::NewMessage> OnGivenUp(const queue::Message& message,
                                             const queue::Cause& cause) override {
      return test_->on_given_up_ ? test_->on_given_up_(message, cause)
                                 : std::vector<queue::NewMessage>();
    }

   private:
    ListenerTest* const test_;
  };

  // Leases are long: the clock of a test may run ahead of a thread that waits for a processor, and
  // no lease must run out for that reason.
  ListenerTest() { options_.visibility = absl::Minutes(10); }
  ~ListenerTest() override { listener_.reset(); }

  void Create() {
    options_.partitions = partitions_;
    // Time stands still here, except in tests about time.
    if (!lingers_) options_.settle_linger = absl::ZeroDuration();
    options_.output_queue = output_;
    if (!events_.on_error) {
      events_.on_error = [this](const absl::Status& status) {
        Note(absl::StrCat("error ", absl::StatusCodeToString(status.code())));
      };
    }
    auto created = QueueListener::Create(
        options_, events_,
        [this]() -> absl::StatusOr<std::unique_ptr<Subscriber>> {
          return std::make_unique<ScriptedSubscriber>(this);
        },
        listened_, &bus_, &clock_);
    ASSERT_TRUE(created.ok()) << created.status();
    listener_ = *std::move(created);
  }

  void Start() {
    Create();
    ASSERT_TRUE(listener_->Start().ok());
  }
  // Waits until the listener has made its first check and sleeps.
  void StartAndSettleDown() {
    Start();
    store_.AwaitCalls(Verb::kStats, 1);
    clock_.AwaitSleepers(1);
  }

  // Ends the threads of the listener before the objects that the lambdas of the test refer to go
  // out of scope.
  void Finish() { EXPECT_TRUE(listener_->Stop(absl::InfiniteDuration()).ok()); }

  // The same, where a thread to be ended may be sleeping, between two tries of a call, say.
  void FinishAsTimePasses() {
    std::atomic<bool> finished = false;
    std::thread finisher([&] {
      Finish();
      finished = true;
    });
    PassTimeUntil([&] { return finished.load(); });
    finisher.join();
  }

  void Put(const std::string& body, int partition = 0) {
    std::vector<queue::NewMessage> messages(1);
    messages[0].body = body;
    ASSERT_TRUE(store_.Put(partitions_[partition], std::move(messages)).ok());
  }

  void PutMany(int n, int partition = 0) {
    std::vector<queue::NewMessage> messages(n);
    for (int i = 0; i < n; ++i) messages[i].body = absl::StrCat("m", i);
    ASSERT_TRUE(store_.Put(partitions_[partition], std::move(messages)).ok());
  }

  void Fire(int64_t messages = 1, int partition = 0) {
    ASSERT_TRUE(
        bus_.Publish(bus::WorkDetected("elsewhere", "acme", partitions_[partition].name, messages))
            .ok());
  }

  // Advances time in steps until `done`, and lets the threads of the listener run between the
  // steps. Time may run faster than the threads: use it for what must happen in the end, not for
  // when exactly.
  void PassTimeUntil(const std::function<bool()>& done,
                     absl::Duration step = absl::Milliseconds(10)) {
    while (!done()) {
      clock_.Advance(step);
      base::LetOthersRun();
    }
  }

  // The same, but time stands still while a message is leased or requested: no lease runs out,
  // however slow the threads of the listener are.
  void PassTimeBetweenLeasesUntil(const std::function<bool()>& done,
                                  absl::Duration step = absl::Milliseconds(10)) {
    while (!done()) {
      if (listener_->QueryState().unsettled_messages == 0) clock_.Advance(step);
      base::LetOthersRun();
    }
  }

  // The store has ended a lease before the listener has heard of it and drawn its conclusions.
  void AwaitSettled() {
    while (listener_->QueryState().unsettled_messages > 0) base::LetOthersRun();
  }

  void AwaitTasks(int n) {
    base::MutexLock lock(&mu_);
    while (subscribers_ != n) changed_.Wait(&mu_);
  }
  int tasks() {
    base::MutexLock lock(&mu_);
    return subscribers_;
  }

  void Note(std::string what) {
    base::MutexLock lock(&mu_);
    notes_.push_back(std::move(what));
    changed_.NotifyAll();
  }
  void AwaitNotes(size_t n) {
    base::MutexLock lock(&mu_);
    while (notes_.size() < n) changed_.Wait(&mu_);
  }
  std::vector<std::string> notes() {
    base::MutexLock lock(&mu_);
    return notes_;
  }

  void CountSubscribers(int by) {
    base::MutexLock lock(&mu_);
    subscribers_ += by;
    changed_.NotifyAll();
  }

  base::Mutex mu_;
  base::CondVar changed_;
  std::vector<std::string> notes_ ABSL_GUARDED_BY(mu_);
  int subscribers_ ABSL_GUARDED_BY(mu_) = 0;

  base::FakeClock clock_;
  MemoryStore store_{&clock_};
  queue::QueueStore* listened_ = &store_;  // what the listener gets
  bus::local::LocalTriggerBus bus_;
  std::vector<queue::QueueId> partitions_ = {{"acme", "input"}};
  queue::QueueId output_ = {"acme", "out"};
  ListenerOptions options_;
  bool lingers_ = false;
  ListenerEvents events_;
  Handler handler_ = [](Delivery&, DeliveryContext&) { return Ok(); };
  std::function<std::vector<queue::NewMessage>(const queue::Message&, const queue::Cause&)>
      on_given_up_;
  std::unique_ptr<QueueListener> listener_;
};

// A gate at which a handler waits until the test opens it.
class Gate {
 public:
  void Pass() {
    base::MutexLock lock(&mu_);
    ++arrived_;
    cv_.NotifyAll();
    while (!open_) cv_.Wait(&mu_);
  }
  void Open() {
    base::MutexLock lock(&mu_);
    open_ = true;
    cv_.NotifyAll();
  }
  void AwaitArrivals(int n) {
    base::MutexLock lock(&mu_);
    while (arrived_ < n) cv_.Wait(&mu_);
  }

 private:
  base::Mutex mu_;
  base::CondVar cv_;
  int arrived_ ABSL_GUARDED_BY(mu_) = 0;
  bool open_ ABSL_GUARDED_BY(mu_) = false;
};

// What the tests of settlements add to listener_fixture.h: a queue that its holders die of.

class ListenerSettlementTest : public ListenerTest {
 protected:
  const queue::QueueId& in() { return partitions_[0]; }

  // The life of a holder that receives everything, begins, and dies.
  void ReceiveBeginAndDie() {
    const auto messages = *store_.Receive(in(), {32, absl::Seconds(30)});
    for (const queue::Message& message : messages) {
      ASSERT_TRUE(store_.BeginAttempt(in(), {message.receipt}).ok());
    }
    store_.BreakLeases(in());
  }

  std::vector<queue::PoisonMessage> Poison() { return *store_.ListPoison(in(), "", 100); }
};

}  // namespace muster::listener
