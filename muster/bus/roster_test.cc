// SPDX-License-Identifier: Apache-2.0
#include "muster/bus/roster.h"

#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/bus/heartbeat_bus.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/bus/mesh_fixture.h"

namespace muster::bus {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class RosterTest : public ::testing::Test {
 protected:
  void OnHeartbeat(const char* name, uint64_t sequence) {
    roster_.OnHeartbeat(Heartbeat(v1::ROLE_PROCESSOR, name, sequence));
  }

  base::FakeClock clock_;
  Roster roster_{&clock_};
};

TEST_F(RosterTest, ListsWhoWasHeardInOrderOfRoleAndInstance) {
  roster_.OnHeartbeat(Heartbeat(v1::ROLE_CONTROLLER, "a", 1));
  roster_.OnHeartbeat(Heartbeat(v1::ROLE_PROCESSOR, "c", 1));
  roster_.OnHeartbeat(Heartbeat(v1::ROLE_PROCESSOR, "b", 1));
  roster_.OnHeartbeat(Heartbeat(v1::ROLE_INITIATOR, "d", 1));
  EXPECT_THAT(Names(roster_.List()), ElementsAre("d", "b", "c", "a"));
  EXPECT_THAT(Names(roster_.List(v1::ROLE_PROCESSOR)), ElementsAre("b", "c"));
  EXPECT_THAT(Names(roster_.List(v1::ROLE_SCALING_AGENT)), IsEmpty());
}

TEST_F(RosterTest, KeepsTheLastHeartbeatAndWhenItCame) {
  OnHeartbeat("p", 1);
  clock_.Advance(absl::Seconds(2));
  OnHeartbeat("p", 2);
  const RosterEntry entry = roster_.List().at(0);
  EXPECT_EQ(entry.heartbeat.sequence(), 2u);
  EXPECT_EQ(entry.heard, clock_.Now());
}

TEST_F(RosterTest, TakesAnInstanceForLeavingOnceThreeHeartbeatsAreMissing) {
  OnHeartbeat("p", 1);
  clock_.Advance(3 * kHeartbeatInterval);  // the third heartbeat may still come
  EXPECT_THAT(Names(roster_.List()), ElementsAre("p"));
  clock_.Advance(kHeartbeatInterval / 2);
  EXPECT_THAT(Names(roster_.List()), ElementsAre("p leaving"));
}

TEST_F(RosterTest, AnInstanceThatIsHeardAgainIsThereAgain) {
  OnHeartbeat("p", 1);
  clock_.Advance(4 * kHeartbeatInterval);
  OnHeartbeat("p", 5);
  EXPECT_THAT(Names(roster_.List()), ElementsAre("p"));
}

TEST_F(RosterTest, NamesThoseThatAreSilentAndWhenTheNextWillBe) {
  OnHeartbeat("first", 1);
  clock_.Advance(absl::Seconds(1));
  OnHeartbeat("second", 1);
  Silence silence = roster_.SilentFor(absl::Seconds(3));
  EXPECT_THAT(silence.instances, IsEmpty());
  EXPECT_EQ(silence.next, absl::Seconds(2));
  clock_.Advance(silence.next);
  silence = roster_.SilentFor(absl::Seconds(3));
  ASSERT_EQ(silence.instances.size(), 1u);
  EXPECT_EQ(silence.instances.front().name, "first");
  EXPECT_EQ(silence.instances.front().lasts, absl::Seconds(3));
  EXPECT_EQ(silence.next, absl::Seconds(1));
  clock_.Advance(kForgetAfter);
  silence = roster_.SilentFor(absl::Seconds(3));
  EXPECT_THAT(silence.instances, IsEmpty()) << "they are forgotten";
  EXPECT_EQ(silence.next, absl::InfiniteDuration());
}

TEST_F(RosterTest, BelievesAnInstanceThatSaysThatItLeaves) {
  v1::Heartbeat last = Heartbeat(v1::ROLE_PROCESSOR, "p", 2);
  last.set_leaving(true);
  roster_.OnHeartbeat(last);
  OnHeartbeat("p", 1);  // an older heartbeat that came late
  EXPECT_THAT(Names(roster_.List()), ElementsAre("p leaving"));
}

TEST_F(RosterTest, IgnoresAHeartbeatThatWasOvertakenOrCameTwice) {
  OnHeartbeat("p", 2);
  clock_.Advance(3 * kHeartbeatInterval);
  OnHeartbeat("p", 1);
  OnHeartbeat("p", 2);
  clock_.Advance(kHeartbeatInterval);
  EXPECT_THAT(Names(roster_.List()), ElementsAre("p leaving"));
  EXPECT_EQ(roster_.ignored(), 2);
}

TEST_F(RosterTest, ForgetsWhoHasBeenSilentForLong) {
  OnHeartbeat("old", 1);
  clock_.Advance(kForgetAfter / 2);
  OnHeartbeat("p", 1);
  clock_.Advance(kForgetAfter / 2);
  EXPECT_THAT(Names(roster_.List()), ElementsAre("p leaving"));
}

TEST_F(RosterTest, DoesNotMindAStepOfTheWallClock) {
  OnHeartbeat("p", 1);
  clock_.StepWallClock(absl::Hours(24));
  EXPECT_THAT(Names(roster_.List()), ElementsAre("p"));
}

TEST_F(RosterTest, IgnoresWhatNobodyCouldHaveSent) {
  v1::Heartbeat long_name = Heartbeat(v1::ROLE_PROCESSOR, std::string(300, 'p'), 1);
  v1::Heartbeat huge = Heartbeat(v1::ROLE_PROCESSOR, "p", 1);
  huge.add_jobs()->set_job(std::string(kMaxHeartbeatBytes, 'j'));
  v1::Heartbeat many = Heartbeat(v1::ROLE_PROCESSOR, "p", 1);  // of few bytes, and much memory
  for (int i = 0; i < 30'000; ++i) many.add_jobs();
  for (const v1::Heartbeat& heartbeat :
       {v1::Heartbeat(), Heartbeat(v1::ROLE_UNSPECIFIED, "p", 1),
        Heartbeat(static_cast<v1::Role>(99), "p", 1), Heartbeat(v1::ROLE_PROCESSOR, "", 1),
        long_name, huge, many}) {
    roster_.OnHeartbeat(heartbeat);
  }
  EXPECT_THAT(roster_.List(), IsEmpty());
  EXPECT_EQ(roster_.ignored(), 7);
}

TEST_F(RosterTest, AddsUpWhatLiveInitiatorsHoldBackFromAQueue) {
  const auto hold_back = [this](absl::string_view name, absl::string_view queue, int64_t items) {
    v1::Heartbeat heartbeat = Heartbeat(v1::ROLE_INITIATOR, name, 1);
    v1::HeldBack* const held = heartbeat.add_held_back();
    held->set_queue(std::string(queue));
    held->set_items(items);
    roster_.OnHeartbeat(heartbeat);
  };
  const auto held_back = [this](absl::string_view queue) {
    return HeldBackItems(roster_.List(v1::ROLE_INITIATOR),
                         [queue](absl::string_view held) { return held == queue; });
  };
  hold_back("a", "acme/shop-in-0", 5);
  hold_back("b", "acme/shop-in-0", 70);
  hold_back("c", "acme/bakery-in-0", 600);
  hold_back("d", "acme/shop-in-0", -1000);
  EXPECT_EQ(held_back("acme/shop-in-0"), 75);
  EXPECT_EQ(held_back("acme/bakery-in-0"), 600);
  EXPECT_EQ(held_back("other/shop-in-0"), 0);
  for (const char* name : {"e", "f"}) {
    hold_back(name, "acme/endless-in-0", std::numeric_limits<int64_t>::max());
  }
  EXPECT_EQ(held_back("acme/endless-in-0"), int64_t{1} << 50);
  clock_.Advance(4 * kHeartbeatInterval);
  EXPECT_EQ(held_back("acme/shop-in-0"), 0) << "who is dead puts nothing";
}

TEST_F(RosterTest, IsBoundedAndGivesThePlacesOfThoseThatLeaveToNewOnes) {
  Roster roster(&clock_, {.max_instances = 2});
  roster.OnHeartbeat(Heartbeat(v1::ROLE_PROCESSOR, "first", 1));
  roster.OnHeartbeat(Heartbeat(v1::ROLE_PROCESSOR, "second", 1));
  roster.OnHeartbeat(Heartbeat(v1::ROLE_PROCESSOR, "third", 1));
  EXPECT_THAT(Names(roster.List()), ElementsAre("first", "second"));
  clock_.Advance(4 * kHeartbeatInterval);
  roster.OnHeartbeat(Heartbeat(v1::ROLE_PROCESSOR, "second", 2));
  roster.OnHeartbeat(Heartbeat(v1::ROLE_PROCESSOR, "third", 2));
  EXPECT_THAT(Names(roster.List()), ElementsAre("second", "third"));
}

}  // namespace
}  // namespace muster::bus
