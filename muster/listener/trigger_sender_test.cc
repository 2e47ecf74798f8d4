#include "muster/listener/trigger_sender.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/bus/local/local_trigger_bus.h"
#include "muster/bus/work_detected.h"
#include "tests/fakes/base/fake_clock.h"

namespace muster::listener {
namespace {

using ::testing::ElementsAre;

class BurstAnnouncerTest : public ::testing::Test {
 protected:
  BurstAnnouncerTest() {
    subscription_ = *bus_.Subscribe([this](const bus::InterRoleCommunicationEvent& event) {
      ASSERT_TRUE(bus::IsFor(event, "acme", "out"));
      heard_.push_back(
          std::get<bus::CloudQueueWorkDetectedTriggerEvent>(event.payload).payload_size);
    });
  }

  base::FakeClock clock_;
  bus::local::LocalTriggerBus bus_;
  CounterSet counters_;
  TriggerSender sender_{&bus_, "me", &counters_};
  BurstAnnouncer announcer_{{"acme", "out"}, &sender_, &clock_};
  std::vector<int64_t> heard_;
  std::unique_ptr<bus::TriggerBus::Subscription> subscription_;
};

TEST_F(BurstAnnouncerTest, AnnouncesTheFirstPutOfABurstAndTheEnd) {
  announcer_.OnPut(1);
  announcer_.OnPut(2);
  announcer_.OnPut(3);
  EXPECT_THAT(heard_, ElementsAre(1));
  announcer_.OnIdle();
  EXPECT_THAT(heard_, ElementsAre(1, 5));
}

TEST_F(BurstAnnouncerTest, AnnouncesALonePutOnce) {
  announcer_.OnPut(1);
  announcer_.OnIdle();
  announcer_.OnIdle();
  EXPECT_THAT(heard_, ElementsAre(1));
}

TEST_F(BurstAnnouncerTest, RemindsReadersWithinALongBurst) {
  announcer_.OnPut(1);
  announcer_.OnPut(1);
  clock_.Advance(absl::Milliseconds(5));
  announcer_.OnPut(1);
  EXPECT_THAT(heard_, ElementsAre(1, 2));
}

TEST(TriggerSenderTest, NeedsNoBus) {
  CounterSet counters;
  TriggerSender(nullptr, "me", &counters).Send({"acme", "out"}, 1);
  EXPECT_EQ(counters.Snapshot().triggers_sent, 0);
}

}  // namespace
}  // namespace muster::listener
