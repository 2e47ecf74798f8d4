// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/bus/heartbeat_bus_conformance.h"

#include <utility>

#include "gmock/gmock.h"

namespace muster::bus::conformance {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

HeartbeatBusEngine::HeartbeatBusEngine(Opener opener) : open(std::move(opener)) {}

v1::Heartbeat From(absl::string_view instance) {
  v1::Heartbeat heartbeat;
  heartbeat.mutable_instance()->set_role(v1::ROLE_PROCESSOR);
  heartbeat.mutable_instance()->set_instance(std::string(instance));
  heartbeat.set_sequence(1);
  return heartbeat;
}

HeartbeatBus::Subscriber HeartbeatRecorder::Subscriber() {
  return [this](const v1::Heartbeat& heartbeat) {
    base::MutexLock lock(&mu_);
    heard_.push_back(heartbeat);
    changed_.NotifyAll();
  };
}

v1::Heartbeat HeartbeatRecorder::Await(absl::string_view instance) {
  base::MutexLock lock(&mu_);
  while (true) {
    for (const v1::Heartbeat& heartbeat : heard_) {
      if (heartbeat.instance().instance() == instance) return heartbeat;
    }
    changed_.Wait(&mu_);
  }
}

std::vector<std::string> HeartbeatRecorder::heard() const {
  base::MutexLock lock(&mu_);
  std::vector<std::string> instances;
  for (const v1::Heartbeat& heartbeat : heard_) {
    instances.push_back(heartbeat.instance().instance());
  }
  return instances;
}

void HeartbeatBusConformance::SetUp() {
  bus_ = GetParam().open();
  ASSERT_NE(bus_, nullptr);
}

std::unique_ptr<HeartbeatBus::Subscription> HeartbeatBusConformance::Subscribe(
    HeartbeatBus::Subscriber subscriber) {
  auto subscription = bus_->Subscribe(std::move(subscriber));
  EXPECT_TRUE(subscription.ok()) << subscription.status();
  return *std::move(subscription);
}

void HeartbeatBusConformance::Publish(const v1::Heartbeat& heartbeat) {
  const absl::Status status = bus_->Publish(heartbeat);
  EXPECT_TRUE(status.ok()) << status;
}

TEST_P(HeartbeatBusConformance, CarriesTheWholeHeartbeatToEverySubscriber) {
  HeartbeatRecorder a, b;
  const auto of_a = Subscribe(a.Subscriber()), of_b = Subscribe(b.Subscriber());
  v1::Heartbeat sent = From("p");
  sent.set_cpu_cores(1.5);
  sent.add_jobs()->set_job("retail");
  Publish(sent);
  for (HeartbeatRecorder* ear : {&a, &b}) {
    EXPECT_EQ(ear->Await("p").SerializeAsString(), sent.SerializeAsString());
  }
}

TEST_P(HeartbeatBusConformance, KeepsTheOrderOfOnePublisher) {
  HeartbeatRecorder ear;
  const auto subscription = Subscribe(ear.Subscriber());
  for (const char* instance : {"1", "2", "3"}) Publish(From(instance));
  ear.Await("3");
  EXPECT_THAT(ear.heard(), ElementsAre("1", "2", "3"));
}

TEST_P(HeartbeatBusConformance, IsSilentAfterASubscriptionEnded) {
  HeartbeatRecorder ended, other;
  auto subscription = Subscribe(ended.Subscriber());
  const auto of_other = Subscribe(other.Subscriber());
  Publish(From("before"));
  ended.Await("before");
  subscription.reset();
  Publish(From("after"));
  other.Await("after");
  EXPECT_THAT(ended.heard(), Not(Contains("after")));
}

TEST_P(HeartbeatBusConformance, ASubscriptionMayOutliveTheBus) {
  HeartbeatRecorder ear;
  const auto subscription = Subscribe(ear.Subscriber());
  bus_.reset();
}

TEST_P(HeartbeatBusConformance, PublishesToNobodyWithoutAnError) { Publish(From("p")); }

TEST_P(HeartbeatBusConformance, RefusesASubscriberThatIsNone) {
  EXPECT_TRUE(absl::IsInvalidArgument(bus_->Subscribe(nullptr).status()));
}

}  // namespace muster::bus::conformance
