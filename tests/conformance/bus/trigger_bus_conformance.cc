// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/bus/trigger_bus_conformance.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "muster/bus/trigger_bus.h"

namespace muster::bus::conformance {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

TriggerBusEngine::TriggerBusEngine(Opener opener) : open(std::move(opener)) {}

TriggerBus::Subscriber TriggerRecorder::Subscriber() {
  return [this](const InterRoleCommunicationEvent& event) {
    base::MutexLock lock(&mu_);
    heard_.push_back(std::get<CloudQueueWorkDetectedTriggerEvent>(event.payload).queue_name);
    changed_.NotifyAll();
  };
}

bool TriggerRecorder::HeardLocked(absl::string_view queue) const {
  return std::find(heard_.begin(), heard_.end(), queue) != heard_.end();
}

void TriggerRecorder::Await(absl::string_view queue) {
  base::MutexLock lock(&mu_);
  while (!HeardLocked(queue)) changed_.Wait(&mu_);
}

std::vector<std::string> TriggerRecorder::heard() const {
  base::MutexLock lock(&mu_);
  return heard_;
}

void TriggerBusConformance::SetUp() {
  bus_ = GetParam().open();
  ASSERT_NE(bus_, nullptr);
}

std::unique_ptr<TriggerBus::Subscription> TriggerBusConformance::Subscribe(
    TriggerBus::Subscriber subscriber) {
  auto subscription = bus_->Subscribe(std::move(subscriber));
  EXPECT_TRUE(subscription.ok()) << subscription.status();
  return *std::move(subscription);
}

void TriggerBusConformance::Publish(absl::string_view queue) {
  const absl::Status status = bus_->Publish(WorkDetected("test", "acme", queue, 1));
  EXPECT_TRUE(status.ok()) << status;
}

TEST_P(TriggerBusConformance, CarriesTheWholeEvent) {
  base::Mutex mu;
  base::CondVar arrived;
  std::vector<InterRoleCommunicationEvent> events;
  const auto subscription = Subscribe([&](const InterRoleCommunicationEvent& event) {
    base::MutexLock lock(&mu);
    events.push_back(event);
    arrived.NotifyAll();
  });
  ASSERT_TRUE(bus_->Publish(WorkDetected("initiator-7", "acme", "in", 64)).ok());
  base::MutexLock lock(&mu);
  while (events.empty()) arrived.Wait(&mu);
  EXPECT_EQ(events[0].from, "initiator-7");
  EXPECT_TRUE(IsFor(events[0], "acme", "in"));
  EXPECT_EQ(std::get<CloudQueueWorkDetectedTriggerEvent>(events[0].payload).messages, 64);
}

TEST_P(TriggerBusConformance, CarriesEventsThatAreNoTriggers) {
  base::Mutex mu;
  base::CondVar arrived;
  std::vector<InterRoleCommunicationEvent> events;
  const auto subscription = Subscribe([&](const InterRoleCommunicationEvent& event) {
    base::MutexLock lock(&mu);
    events.push_back(event);
    arrived.NotifyAll();
  });
  ASSERT_TRUE(bus_->Publish({"controller-1", BatchCountedEvent{7}}).ok());
  base::MutexLock lock(&mu);
  while (events.empty()) arrived.Wait(&mu);
  EXPECT_EQ(events[0].from, "controller-1");
  EXPECT_EQ(std::get<BatchCountedEvent>(events[0].payload).batch, 7);
}

TEST_P(TriggerBusConformance, ReachesEverySubscriber) {
  TriggerRecorder a, b;
  const auto subscription_a = Subscribe(a.Subscriber());
  const auto subscription_b = Subscribe(b.Subscriber());
  Publish("in");
  a.Await("in");
  b.Await("in");
}

TEST_P(TriggerBusConformance, KeepsTheOrderOfOnePublisher) {
  TriggerRecorder ear;
  const auto subscription = Subscribe(ear.Subscriber());
  for (const char* queue : {"q1", "q2", "q3"}) Publish(queue);
  ear.Await("q3");
  EXPECT_THAT(ear.heard(), ElementsAre("q1", "q2", "q3"));
}

TEST_P(TriggerBusConformance, PublishesToNobodyWithoutAnError) { Publish("in"); }

TEST_P(TriggerBusConformance, IsSilentAfterASubscriptionEnded) {
  TriggerRecorder ended, other;
  auto subscription = Subscribe(ended.Subscriber());
  const auto other_subscription = Subscribe(other.Subscriber());
  Publish("before");
  ended.Await("before");
  subscription.reset();
  Publish("after");
  other.Await("after");
  EXPECT_THAT(ended.heard(), Not(Contains("after")));
}

TEST_P(TriggerBusConformance, DoesNotReplayWhatWasPublishedBeforeTheSubscription) {
  Publish("early");
  TriggerRecorder ear;
  const auto subscription = Subscribe(ear.Subscriber());
  Publish("late");
  ear.Await("late");
  EXPECT_THAT(ear.heard(), ElementsAre("late"));
}

TEST_P(TriggerBusConformance, ASubscriptionMayOutliveTheBus) {
  TriggerRecorder ear;
  const auto subscription = Subscribe(ear.Subscriber());
  bus_.reset();
}

TEST_P(TriggerBusConformance, RefusesASubscriberThatIsNone) {
  EXPECT_EQ(bus_->Subscribe(nullptr).status().code(), absl::StatusCode::kInvalidArgument);
}

// A listener relies on this when it ends: its own state dies right after its subscription.
TEST_P(TriggerBusConformance, ASubscriberNeverRunsOnceItsSubscriptionHasEnded) {
  std::atomic<bool> publishing = true;
  std::vector<std::thread> publishers;
  for (int i = 0; i < 2; ++i) {
    publishers.emplace_back([&] {
      while (publishing) Publish("in");
    });
  }
  for (int i = 0; i < 200; ++i) {
    auto alive = std::make_unique<std::atomic<bool>>(true);
    auto subscription = Subscribe(
        [state = alive.get()](const InterRoleCommunicationEvent&) { EXPECT_TRUE(*state); });
    subscription.reset();
    *alive = false;
    alive.reset();  // a subscriber that still ran would now touch freed memory
  }
  publishing = false;
  for (std::thread& publisher : publishers) publisher.join();
}

TEST_P(TriggerBusConformance, ASubscriberMayEndAnothersSubscription) {
  TriggerRecorder other;
  base::Mutex mu;
  base::CondVar changed;
  bool ended = false;
  std::unique_ptr<TriggerBus::Subscription> subscription_of_other;
  const auto subscription = Subscribe([&](const InterRoleCommunicationEvent&) {
    base::MutexLock lock(&mu);
    subscription_of_other.reset();
    ended = true;
    changed.NotifyAll();
  });
  {
    base::MutexLock lock(&mu);
    subscription_of_other = Subscribe(other.Subscriber());
  }
  Publish("in");
  base::MutexLock lock(&mu);
  while (!ended) changed.Wait(&mu);
}

// Each subscriber ends the other's subscription while two threads publish: they must not deadlock.
TEST_P(TriggerBusConformance, TwoSubscribersMayEndEachOthersSubscriptions) {
  for (int i = 0; i < 100; ++i) {
    std::atomic<int> running = 0;
    base::Mutex mu;
    std::unique_ptr<TriggerBus::Subscription> first, second;
    const auto end = [&](std::unique_ptr<TriggerBus::Subscription>* victim) {
      return [&, victim](const InterRoleCommunicationEvent&) {
        std::unique_ptr<TriggerBus::Subscription> taken;
        base::MutexLock lock(&mu);
        taken = std::move(*victim);
        ++running;
      };
    };
    {
      base::MutexLock lock(&mu);
      first = Subscribe(end(&second));
      second = Subscribe(end(&first));
    }
    std::thread publisher([&] { Publish("a"); });
    Publish("b");
    publisher.join();
    std::unique_ptr<TriggerBus::Subscription> rest_first, rest_second;
    base::MutexLock lock(&mu);
    rest_first = std::move(first);
    rest_second = std::move(second);
  }
}

TEST_P(TriggerBusConformance, ASubscriberMaySubscribeAnother) {
  TriggerRecorder later;
  base::Mutex mu;
  base::CondVar changed;
  std::vector<std::unique_ptr<TriggerBus::Subscription>> added;
  const auto subscription = Subscribe([&](const InterRoleCommunicationEvent&) {
    base::MutexLock lock(&mu);
    if (added.empty()) added.push_back(Subscribe(later.Subscriber()));
    changed.NotifyAll();
  });
  Publish("first");
  {
    base::MutexLock lock(&mu);
    while (added.empty()) changed.Wait(&mu);
  }
  Publish("second");
  later.Await("second");
}

}  // namespace muster::bus::conformance
