// SPDX-License-Identifier: Apache-2.0
#include "services/host/holder_watch.h"

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/bus/local/local_buses.h"
#include "muster/queue/store_decorators.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/telemetry/shown.h"

namespace muster::host {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A store that only knows holders.
class HolderStore final : public queue::InterceptedStore {
 public:
  HolderStore() : InterceptedStore(nullptr) {}

  absl::StatusOr<std::vector<queue::Released>> ReleaseHeldBy(const std::string& holder,
                                                             absl::Duration) override {
    asked.push_back(holder);
    return answer;
  }

  std::vector<std::string> asked;
  absl::StatusOr<std::vector<queue::Released>> answer = std::vector<queue::Released>();
};

class HolderWatchTest : public ::testing::Test {
 protected:
  HolderWatchTest() {
    subscription_ = bus_.Subscribe([this](const bus::InterRoleCommunicationEvent& event) {
                          const auto* work =
                              std::get_if<bus::CloudQueueWorkDetectedTriggerEvent>(&event.payload);
                          if (work != nullptr) woken_.push_back(work->queue_name);
                        })
                        .value();
  }

  void Hear(const std::string& instance, uint64_t sequence) {
    v1::Heartbeat heartbeat;
    heartbeat.mutable_instance()->set_role(v1::ROLE_PROCESSOR);
    heartbeat.mutable_instance()->set_instance(instance);
    heartbeat.set_sequence(sequence);
    roster_.OnHeartbeat(heartbeat);
  }

  base::FakeClock clock_;
  bus::Roster roster_{&clock_};
  HolderStore store_;
  bus::local::LocalTriggerBus bus_;
  std::vector<std::string> woken_;
  std::unique_ptr<bus::TriggerBus::Subscription> subscription_;
  HolderWatch watch_{"self", &roster_, &store_, &bus_, &clock_};
};

TEST_F(HolderWatchTest, AsksForNobodyWhileAllAreHeard) {
  Hear("self", 1);
  for (uint64_t heard = 1; heard < 10; ++heard) {
    Hear("other", heard);
    EXPECT_GT(watch_.Look(), absl::Milliseconds(100));
    clock_.Advance(bus::kHeartbeatInterval);
  }
  EXPECT_THAT(store_.asked, IsEmpty());
}

TEST_F(HolderWatchTest, GivesBackOnceWhatASilentInstanceHeldAndWakesOthers) {
  store_.answer = std::vector<queue::Released>{{{"acme", "work"}, 3}};
  Hear("dead", 1);
  const absl::Duration wait = watch_.Look();
  EXPECT_THAT(store_.asked, IsEmpty());
  clock_.Advance(wait);
  watch_.Look();
  EXPECT_THAT(store_.asked, ElementsAre("dead"));
  EXPECT_THAT(woken_, ElementsAre("work"));
  clock_.Advance(kAskAgain);
  watch_.Look();
  EXPECT_THAT(store_.asked, ElementsAre("dead")) << "nothing is left there";
}

TEST_F(HolderWatchTest, CountsTheDeadAndWhatIsGivenBackOfThem) {
  telemetry::Registry registry;
  HolderWatch watch("self", &roster_, &store_, &bus_, &clock_, &registry);
  EXPECT_EQ(telemetry::Shown(registry, "muster_dead_holders_total"), 0);
  store_.answer =
      std::vector<queue::Released>{{{"acme", "work-in-0"}, 3}, {{"acme", "work-in-1"}, 2}};
  Hear("dead", 1);
  clock_.Advance(kSilentHolder);
  watch.Look();
  // Another service was first.
  store_.answer = std::vector<queue::Released>();
  Hear("dead, too", 1);
  clock_.Advance(kSilentHolder);
  watch.Look();
  EXPECT_THAT(store_.asked, ElementsAre("dead", "dead, too"));
  EXPECT_EQ(telemetry::Shown(registry, "muster_dead_holders_total"), 1);
  const std::string messages = R"(muster_dead_holder_messages_total{queue="work-in"})";
  EXPECT_EQ(telemetry::Shown(registry, messages), 5);
}

TEST_F(HolderWatchTest, AsksAgainForAnInstanceThatMayLive) {
  store_.answer = absl::FailedPreconditionError("it may live");
  Hear("frozen", 1);
  clock_.Advance(kSilentHolder);
  EXPECT_EQ(watch_.Look(), kAskAgain);
  clock_.Advance(kAskAgain);
  watch_.Look();
  EXPECT_THAT(store_.asked, ElementsAre("frozen", "frozen"));
  EXPECT_THAT(woken_, IsEmpty());
}

TEST_F(HolderWatchTest, AsksAgainForAnInstanceThatWasHeardMeanwhile) {
  Hear("other", 1);
  clock_.Advance(kSilentHolder);
  watch_.Look();
  Hear("other", 2);
  watch_.Look();
  clock_.Advance(kSilentHolder);
  watch_.Look();
  EXPECT_THAT(store_.asked, ElementsAre("other", "other"));
}

TEST_F(HolderWatchTest, StopsBeforeItIsStartedAndWhileItWaits) {
  HolderWatch idle("self", &roster_, &store_, &bus_, &clock_);
  HolderWatch running("self", &roster_, &store_, &bus_, &clock_);
  running.Start();
}

}  // namespace
}  // namespace muster::host
