// SPDX-License-Identifier: Apache-2.0
#include "muster/listener/trigger_sender.h"

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/bus/local/local_buses.h"
#include "muster/bus/trigger_bus.h"
#include "tests/fakes/base/fake_clock.h"

namespace muster::listener {

namespace {

using ::testing::ElementsAre;

class BurstAnnouncerTest : public ::testing::Test {
 protected:
  BurstAnnouncerTest() {
    subscription_ = *bus_.Subscribe([this](const bus::InterRoleCommunicationEvent& event) {
      ASSERT_TRUE(bus::IsFor(event, "acme", "out"));
      heard_.push_back(std::get<bus::CloudQueueWorkDetectedTriggerEvent>(event.payload).messages);
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

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class HandoverTest : public ::testing::Test {
 protected:
  HandoverTest() {
    subscription_ = *bus_.Subscribe([this](const bus::InterRoleCommunicationEvent& event) {
      const auto& work = std::get<bus::CloudQueueWorkDetectedTriggerEvent>(event.payload);
      heard_.push_back(absl::StrCat(event.from, ": ", work.messages, " in ", work.storage_account,
                                    "/", work.queue_name, " for ", work.wanted));
      // Does what each listener does when it receives a trigger.
      EXPECT_TRUE(handover_.IsForOthers(work.wanted));
    });
  }

  void PassAndAnnounce(absl::Duration time) {
    clock_.Advance(time);
    handover_.AnnounceDue();
  }

  base::FakeClock clock_;
  bus::local::LocalTriggerBus bus_;
  CounterSet counters_;
  TriggerSender sender_{&bus_, "me", &counters_};
  Handover handover_{&sender_, &clock_};
  const queue::QueueId in_ = {"acme", "in"};
  std::vector<std::string> heard_;
  std::unique_ptr<bus::TriggerBus::Subscription> subscription_;
};

TEST_F(HandoverTest, AnnouncesAMessageWhenItIsVisibleAndOnlyOnce) {
  handover_.OnPutBack(in_, "v1", absl::Seconds(2));
  PassAndAnnounce(absl::Milliseconds(1990));
  EXPECT_THAT(heard_, IsEmpty());
  PassAndAnnounce(absl::Milliseconds(10));
  EXPECT_THAT(heard_, ElementsAre("me: 1 in acme/in for v1"));
  PassAndAnnounce(absl::Hours(1));
  EXPECT_EQ(heard_.size(), 1);
}

TEST_F(HandoverTest, AnnouncesTogetherWhatIsVisibleTogetherAndForTheSame) {
  for (int i = 0; i < 3; ++i) handover_.OnPutBack(in_, "v1", absl::Seconds(2));
  handover_.OnPutBack(in_, "v3", absl::Seconds(2));
  handover_.OnPutBack({"acme", "in-1"}, "v1", absl::Seconds(2));
  handover_.OnPutBack(in_, "v1", absl::Seconds(9));
  PassAndAnnounce(absl::Seconds(2));
  EXPECT_THAT(heard_, UnorderedElementsAre("me: 3 in acme/in for v1", "me: 1 in acme/in for v3",
                                           "me: 1 in acme/in-1 for v1"));
}

// The fixture's subscriber asks the Handover whether the work is for others.
TEST_F(HandoverTest, DoesNotComeForItsOwnAnnouncementHoweverLateItIsMade) {
  handover_.OnPutBack(in_, "v1", absl::Seconds(2));
  PassAndAnnounce(absl::Hours(1));
  EXPECT_EQ(heard_.size(), 1);
}

TEST_F(HandoverTest, KeepsAwayForAMinuteFromTheLikeOfWhatItPutBackLast) {
  EXPECT_FALSE(handover_.IsForOthers("v1"));
  handover_.OnPutBack(in_, "v1", absl::Seconds(2));
  clock_.Advance(absl::Seconds(59));
  EXPECT_TRUE(handover_.IsForOthers("v1"));
  handover_.OnPutBack(in_, "v1", absl::Seconds(2));
  clock_.Advance(absl::Seconds(59));
  EXPECT_TRUE(handover_.IsForOthers("v1"));
  clock_.Advance(absl::Seconds(1));
  EXPECT_FALSE(handover_.IsForOthers("v1"));
}

TEST_F(HandoverTest, ComesForWhatIsOfAnotherKindOrOfNone) {
  handover_.OnPutBack(in_, "v1", absl::Seconds(2));
  EXPECT_FALSE(handover_.IsForOthers("v2"));
  EXPECT_FALSE(handover_.IsForOthers(""));
}

TEST_F(HandoverTest, RemembersABoundedNumberTheOldestKindsLeast) {
  for (size_t i = 0; i < 2 * Handover::kMaxWanted; ++i) {
    handover_.OnPutBack(in_, absl::StrCat("v", i), absl::Seconds(2));
    clock_.Advance(absl::Milliseconds(1));
  }
  EXPECT_FALSE(handover_.IsForOthers("v0"));
  EXPECT_TRUE(handover_.IsForOthers(absl::StrCat("v", 2 * Handover::kMaxWanted - 1)));
}

TEST_F(HandoverTest, AnnouncesABoundedNumberTheSoonestFirst) {
  for (int second = 5000; second > 0; --second) {
    handover_.OnPutBack(in_, "v1", absl::Seconds(second));
  }
  PassAndAnnounce(absl::Seconds(1));
  EXPECT_THAT(heard_, ElementsAre("me: 1 in acme/in for v1"));
  for (int second = 2; second <= 5000; ++second) {
    clock_.Advance(absl::Seconds(1));
    handover_.OnPutBack(in_, "v1", absl::Hours(10));  // the listener stays away
    handover_.AnnounceDue();
  }
  EXPECT_LE(heard_.size(), Handover::kMaxAnnouncements);
}

}  // namespace

}  // namespace muster::listener
