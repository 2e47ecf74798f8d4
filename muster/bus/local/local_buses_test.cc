// SPDX-License-Identifier: Apache-2.0
#include "muster/bus/local/local_buses.h"

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/bus/fan_out.h"
#include "muster/bus/trigger_bus.h"
#include "tests/conformance/bus/heartbeat_bus_conformance.h"
#include "tests/conformance/bus/trigger_bus_conformance.h"

namespace muster::bus::conformance {

INSTANTIATE_TEST_SUITE_P(Local, TriggerBusConformance, ::testing::Values(TriggerBusEngine([] {
                           return std::make_unique<bus::local::LocalTriggerBus>();
                         })));

}  // namespace muster::bus::conformance

namespace muster::bus::local {

namespace {

using bus::InterRoleCommunicationEvent;
using bus::WorkDetected;

TEST(LocalTriggerBusTest, HasToldEverybodyWhenPublishReturns) {
  LocalTriggerBus bus;
  int heard = 0;
  const auto subscription = bus.Subscribe([&](const InterRoleCommunicationEvent&) { ++heard; });
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(bus.Publish(WorkDetected("me", "acme", "in", 1)).ok());
  EXPECT_EQ(heard, 3);
}

TEST(LocalTriggerBusTest, RunsOneSubscriberAtATime) {
  LocalTriggerBus bus;
  int heard = 0;  // not atomic on purpose: ThreadSanitizer would see two at a time
  const auto a = bus.Subscribe([&](const InterRoleCommunicationEvent&) { ++heard; });
  const auto b = bus.Subscribe([&](const InterRoleCommunicationEvent&) { ++heard; });
  std::vector<std::thread> publishers;
  for (int i = 0; i < 4; ++i) {
    publishers.emplace_back([&] {
      for (int n = 0; n < 100; ++n) (void)bus.Publish(WorkDetected("me", "acme", "in", 1));
    });
  }
  for (std::thread& publisher : publishers) publisher.join();
  EXPECT_EQ(heard, 4 * 100 * 2);
}

TEST(LocalTriggerBusTest, RefusesASubscriberThatPublishes) {
  LocalTriggerBus bus;
  absl::Status inner;
  const auto subscription =
      bus.Subscribe([&](const InterRoleCommunicationEvent& event) { inner = bus.Publish(event); });
  EXPECT_TRUE(bus.Publish(WorkDetected("me", "acme", "in", 1)).ok());
  EXPECT_EQ(inner.code(), absl::StatusCode::kFailedPrecondition);
}

TEST(LocalTriggerBusTest, DoesNotTellThoseWhomASubscriberAddsOfTheEventUnderWay) {
  LocalTriggerBus bus;
  int late_heard = 0;
  std::vector<std::unique_ptr<bus::TriggerBus::Subscription>> added;
  const auto subscription = bus.Subscribe([&](const InterRoleCommunicationEvent&) {
    added.push_back(
        bus.Subscribe([&](const InterRoleCommunicationEvent&) { ++late_heard; }).value());
  });
  ASSERT_TRUE(bus.Publish(WorkDetected("me", "acme", "in", 1)).ok());
  EXPECT_EQ(late_heard, 0);
  ASSERT_TRUE(bus.Publish(WorkDetected("me", "acme", "in", 1)).ok());
  EXPECT_EQ(late_heard, 1);
}

TEST(LocalTriggerBusTest, HoldsABoundedNumberOfSubscriptions) {
  LocalTriggerBus bus;
  std::vector<std::unique_ptr<bus::TriggerBus::Subscription>> subscriptions;
  const auto nothing = [](const InterRoleCommunicationEvent&) {};
  for (int i = 0; i < bus::kMaxTriggerSubscriptions; ++i) {
    subscriptions.push_back(bus.Subscribe(nothing).value());
  }
  EXPECT_EQ(bus.Subscribe(nothing).status().code(), absl::StatusCode::kResourceExhausted);
  subscriptions.pop_back();
  EXPECT_TRUE(bus.Subscribe(nothing).ok());
}

}  // namespace

}  // namespace muster::bus::local

namespace muster::bus::conformance {

INSTANTIATE_TEST_SUITE_P(Local, HeartbeatBusConformance, ::testing::Values(HeartbeatBusEngine([] {
                           return std::make_unique<local::LocalHeartbeatBus>();
                         })));

}  // namespace muster::bus::conformance
