// SPDX-License-Identifier: Apache-2.0
#include "services/scaling-agent/fleet_view.h"

#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/scaling-agent/limits.h"
#include "tests/fakes/scaling-agent/agent_fixture.h"

namespace muster::scaling_agent {
namespace {

using actuator::Replica;
using actuator::ReplicaState;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class FleetViewTest : public ::testing::Test {
 protected:
  FleetViewTest() {
    signs_.now = now_;
    signs_.is_seen = true;
    signs_.ordered = now_;
  }

  void Hear(const v1::Heartbeat& beat, bool silent = false) {
    const bus::RosterEntry entry{beat, signs_.now, silent || beat.leaving()};
    const WorkerLoad load = LoadOf(entry, kTestAccount, {"in"});
    for (WorkerLoad& known : signs_.workers) {
      if (known.instance == load.instance) {
        known = load;
        return;
      }
    }
    signs_.workers.push_back(load);
  }
  void Have(const std::string& instance, ReplicaState state = ReplicaState::kReady) {
    signs_.state.replicas.push_back({instance, "pod-" + instance, state, signs_.now});
    if (state != ReplicaState::kDraining) ++signs_.state.wanted;
  }
  FleetLook LookAfter(absl::Duration lapse) {
    signs_.now += lapse;
    return view_.Look(signs_);
  }
  FleetLook Look() { return view_.Look(signs_); }

  const absl::Time now_ = absl::FromUnixSeconds(1'000'000'000);
  FleetSigns signs_;
  FleetView view_{SpeedOptions{absl::Seconds(30), 1}, 0};
};

TEST_F(FleetViewTest, AReplicaIsReadyOnceItsHeartbeatNamesAQueue) {
  Have("a");
  FleetLook look = Look();
  EXPECT_EQ(look.fleet.ready, 0);
  EXPECT_THAT(look.fleet.starting, ElementsAre(now_ + absl::Seconds(30)));
  v1::Heartbeat early = BeatOf("a", 1);
  early.clear_jobs();
  Hear(early);
  EXPECT_EQ(Look().fleet.ready, 0) << "it lives, but works on nothing yet";
  Hear(BeatOf("a", 2));
  look = Look();
  EXPECT_EQ(look.fleet.ready, 1);
  EXPECT_THAT(look.fleet.starting, IsEmpty());
  EXPECT_EQ(look.fleet.tasks, 2);
}

TEST_F(FleetViewTest, WhatWasOrderedAndDoesNotShowYetIsStarting) {
  Have("a");
  Hear(BeatOf("a", 1));
  signs_.state.wanted = 3;
  signs_.ordered = now_ - absl::Seconds(10);
  const FleetLook look = Look();
  EXPECT_EQ(look.fleet.ready, 1);
  EXPECT_THAT(look.fleet.starting, ElementsAre(now_ + absl::Seconds(20), now_ + absl::Seconds(20)));
  EXPECT_EQ(look.live, 3);
}

TEST_F(FleetViewTest, TakesNoMoreOfAMistypedNumberThanAPolicyCounts) {
  signs_.state.wanted = std::numeric_limits<int>::max();
  EXPECT_EQ(Look().fleet.committed(), scaling::policy::kMaxReplicas);
}

TEST_F(FleetViewTest, WhatIsTooManyForTheLastOrderIsAsGoodAsGone) {
  for (const char* name : {"a", "b", "c"}) {
    Have(name);
    Hear(BeatOf(name, 1));
  }
  Hear(BusyBeatOf("b", 2, 10));
  signs_.state.wanted = 1;
  const FleetLook look = Look();
  EXPECT_EQ(look.fleet.ready, 1);
  EXPECT_EQ(look.fleet.draining, 2);
  EXPECT_THAT(look.let_go_first, ElementsAre("pod-b")) << "the one that works stays";
  EXPECT_THAT(look.fleet.idle_since, IsEmpty());
}

TEST_F(FleetViewTest, OneThatDrainsOrSaysThatItLeavesCountsNowhereElse) {
  Have("a", ReplicaState::kDraining);
  Have("b");
  v1::Heartbeat bye = BeatOf("b", 7);
  bye.set_leaving(true);
  Hear(bye);
  Hear(BeatOf("a", 1));
  signs_.state.wanted = 0;
  const FleetLook look = Look();
  EXPECT_EQ(look.fleet.draining, 2);
  EXPECT_EQ(look.fleet.committed(), 0);
}

TEST_F(FleetViewTest, SilenceMakesNobodyGoAway) {
  Have("a");
  Have("b");
  Hear(BeatOf("a", 1));
  Hear(BeatOf("b", 1));
  EXPECT_EQ(Look().fleet.ready, 2);
  Hear(BeatOf("b", 1), /*silent=*/true);
  const FleetLook look = Look();
  EXPECT_EQ(look.fleet.ready, 1);
  EXPECT_EQ(look.fleet.committed(), 2);
}

TEST_F(FleetViewTest, WhenMostFallSilentTheirReportsAreLostAndNotThey) {
  for (const char* name : {"a", "b", "c"}) {
    Have(name);
    Hear(BusyBeatOf(name, 1, 10));
  }
  const FleetLook before = Look();
  ASSERT_EQ(before.fleet.ready, 3);
  Hear(BusyBeatOf("a", 1, 10), /*silent=*/true);
  EXPECT_FALSE(Look().has_lost_reports) << "one that hangs";
  Hear(BusyBeatOf("b", 1, 10), /*silent=*/true);
  FleetLook look = Look();
  EXPECT_TRUE(look.has_lost_reports);
  EXPECT_EQ(look.fleet.ready, 3);
  signs_.workers.clear();  // the roster forgets silent instances
  look = LookAfter(absl::Minutes(10));
  EXPECT_TRUE(look.has_lost_reports);
  EXPECT_EQ(look.fleet.ready, 3);
  EXPECT_THAT(look.fleet.idle_since, IsEmpty()) << "nobody said that it idles";
  EXPECT_EQ(look.fleet.tasks, before.fleet.tasks);
  EXPECT_EQ(look.fleet.max_tasks, before.fleet.tasks);
  EXPECT_EQ(look.estimates.items_per_second, before.estimates.items_per_second);
  EXPECT_DOUBLE_EQ(look.estimates.cpu_share, before.estimates.cpu_share);

  signs_.state.replicas.front().state = ReplicaState::kStarting;
  look = Look();
  EXPECT_EQ(look.fleet.ready, 2) << "the platform says that it does not work";
  EXPECT_EQ(look.fleet.committed(), 3);
  for (const char* name : {"b", "c"}) Hear(BeatOf(name, 2));
  EXPECT_FALSE(Look().has_lost_reports);
}

TEST_F(FleetViewTest, TheOnlyReplicaHangsWhereTheBusBringsWhatOthersSay) {
  Have("a");
  Hear(BusyBeatOf("a", 1, 10));
  ASSERT_EQ(Look().fleet.ready, 1);
  signs_.hears_others = true;
  Hear(BusyBeatOf("a", 1, 10), /*silent=*/true);
  const FleetLook look = Look();
  EXPECT_FALSE(look.has_lost_reports);
  EXPECT_EQ(look.fleet.ready, 0) << "others must do its work";
}

TEST_F(FleetViewTest, NoCrowdIsSilentForEverWhereTheBusBringsWhatOthersSay) {
  for (const char* name : {"a", "b"}) {
    Have(name);
    Hear(BusyBeatOf(name, 1, 10));
  }
  ASSERT_EQ(Look().fleet.ready, 2);
  signs_.hears_others = true;
  for (const char* name : {"a", "b"}) Hear(BusyBeatOf(name, 1, 10), /*silent=*/true);
  EXPECT_TRUE(Look().has_lost_reports);
  EXPECT_EQ(LookAfter(kLostReportsPatience - absl::Seconds(1)).fleet.ready, 2);
  EXPECT_EQ(LookAfter(absl::Seconds(1)).fleet.ready, 0);
}

TEST_F(FleetViewTest, AReplicaThatLeavesVouchesForNoOther) {
  for (const char* name : {"a", "b", "c"}) {
    Have(name);
    Hear(BusyBeatOf(name, 1, 10));
  }
  ASSERT_EQ(Look().fleet.ready, 3);
  v1::Heartbeat bye = BeatOf("a", 2);
  bye.set_leaving(true);
  Hear(bye);
  for (const char* name : {"b", "c"}) Hear(BusyBeatOf(name, 1, 10), /*silent=*/true);
  EXPECT_TRUE(Look().has_lost_reports);
}

TEST_F(FleetViewTest, TrustsThePlatformUntilAllHeartbeatsCanHaveBeenHeard) {
  Have("a");
  Have("b", ReplicaState::kStarting);
  signs_.trusts_platform = true;
  const FleetLook look = Look();
  EXPECT_EQ(look.fleet.ready, 1);
  EXPECT_THAT(look.fleet.starting, SizeIs(1));
  EXPECT_THAT(look.fleet.idle_since, IsEmpty()) << "nobody said that it idles";
}

TEST_F(FleetViewTest, HeartbeatsAloneCountWhereThereIsNoPlatform) {
  signs_.has_platform = false;
  Hear(BeatOf("a", 1));
  Hear(BusyBeatOf("b", 1, 10));
  v1::Heartbeat other = BeatOf("c", 1);
  other.mutable_jobs(0)->mutable_partitions(0)->set_queue("acme/other-0");
  Hear(other);
  const FleetLook look = Look();
  EXPECT_EQ(look.fleet.ready, 2);
  EXPECT_EQ(look.live, 2);
  EXPECT_THAT(look.fleet.idle_since, ElementsAre(now_));
  EXPECT_THAT(look.let_go_first, ElementsAre("a", "b"));
}

TEST_F(FleetViewTest, AHeartbeatStandsForAReplicaThatHasNotToldItsName) {
  signs_.state.replicas = {{"", "4711", ReplicaState::kReady, now_},
                           {"", "4712", ReplicaState::kReady, now_}};
  signs_.state.wanted = 2;
  Hear(BeatOf("a", 1));
  const FleetLook look = Look();
  EXPECT_EQ(look.fleet.ready, 1);
  EXPECT_THAT(look.fleet.starting, SizeIs(1));
}

TEST_F(FleetViewTest, IdlesSinceTheFirstHeartbeatThatShowsNoWork) {
  Have("a");
  Hear(BusyBeatOf("a", 1, 10));
  EXPECT_THAT(Look().fleet.idle_since, IsEmpty());
  signs_.now += absl::Seconds(2);
  const absl::Time idle = signs_.now;
  Hear(BeatOf("a", 2));
  EXPECT_THAT(Look().fleet.idle_since, ElementsAre(idle));
  signs_.now += absl::Seconds(2);
  Hear(BeatOf("a", 3));
  EXPECT_THAT(Look().fleet.idle_since, ElementsAre(idle));
  Hear(BusyBeatOf("a", 4, 10));
  EXPECT_THAT(Look().fleet.idle_since, IsEmpty());
}

TEST_F(FleetViewTest, WorkForAnotherTargetIsWorkToo) {
  Have("a");
  v1::Heartbeat beat = BeatOf("a", 1);
  v1::JobLoad* const other = beat.add_jobs();
  other->add_partitions()->set_queue("acme/other-0");
  other->mutable_partitions(0)->set_unsettled(1);
  Hear(beat);
  EXPECT_EQ(Look().fleet.ready, 1);
  EXPECT_THAT(Look().fleet.idle_since, IsEmpty());
}

TEST_F(FleetViewTest, ThoseWithTheFewestLeasesGoFirst) {
  for (const char* name : {"a", "b", "c"}) Have(name);
  Hear(BusyBeatOf("a", 1, 10));
  Hear(BeatOf("b", 1));
  v1::Heartbeat full = BusyBeatOf("c", 1, 10);
  full.mutable_jobs(0)->mutable_partitions(0)->set_unsettled(1);
  Hear(full);
  EXPECT_THAT(Look().let_go_first, ElementsAre("pod-b", "pod-c", "pod-a"));
}

TEST_F(FleetViewTest, ThoseOnStandbyAreTheIdleOnes) {
  for (const char* name : {"a", "b", "c"}) Have(name);
  Hear(BusyBeatOf("a", 1, 10));
  Hear(BeatOf("b", 1));
  Hear(BeatOf("c", 1));
  signs_.standby = 1;
  const FleetLook look = Look();
  EXPECT_EQ(look.fleet.parked, 1);
  EXPECT_EQ(look.fleet.ready, 2);
  EXPECT_THAT(look.fleet.idle_since, SizeIs(1));
  EXPECT_EQ(look.live, 3);
}

// Its heartbeats go on while it is parked, and tell the tasks that it had.
TEST_F(FleetViewTest, AParkedReplicaStandsForNoneThatWorksOrStarts) {
  Have("a");
  Have("b", ReplicaState::kStarting);
  signs_.state.replicas.push_back({"c", "pod-c", ReplicaState::kParked, now_});
  v1::Heartbeat busy = BusyBeatOf("a", 1, 10);
  busy.mutable_jobs(0)->set_threads_max(4);
  Hear(busy);
  Hear(BeatOf("c", 1));
  const FleetLook look = Look();
  EXPECT_EQ(look.fleet.ready, 1);
  EXPECT_THAT(look.fleet.starting, SizeIs(1));
  EXPECT_THAT(look.fleet.idle_since, IsEmpty());
  EXPECT_EQ(look.fleet.draining, 1);
  EXPECT_EQ(look.fleet.tasks, 4);
  EXPECT_THAT(look.let_go_first, ElementsAre("pod-a"));
}

// Otherwise it would have been idle for long, and would be let go before its first item.
TEST_F(FleetViewTest, AResumedReplicaIdlesSinceItWasResumed) {
  Have("a");
  signs_.state.replicas.front().state = ReplicaState::kParked;
  signs_.state.wanted = 0;
  Hear(BeatOf("a", 1));
  Look();
  signs_.now += absl::Minutes(10);
  signs_.state.replicas.front().state = ReplicaState::kReady;
  signs_.state.wanted = 1;
  Hear(BeatOf("a", 2));
  EXPECT_THAT(Look().fleet.idle_since, ElementsAre(signs_.now));
}

TEST_F(FleetViewTest, ThoseThatWaitForAReleaseExistAndDoNotWork) {
  for (const char* name : {"a", "b", "c"}) Have(name);
  for (const char* name : {"b", "c"}) {
    v1::Heartbeat beat = BeatOf(name, 1);
    beat.mutable_standby()->set_release("opening");
    Hear(beat);
  }
  Hear(BusyBeatOf("a", 1, 10));
  FleetLook look = Look();
  EXPECT_EQ(look.waiting, 2);
  EXPECT_EQ(look.fleet.ready, 1);
  EXPECT_THAT(look.fleet.starting, IsEmpty());
  EXPECT_THAT(look.fleet.idle_since, IsEmpty());
  EXPECT_EQ(look.live, 3);
  EXPECT_THAT(look.let_go_first, ElementsAre("pod-a"));
  v1::Heartbeat left = BeatOf("b", 2);
  left.mutable_standby()->mutable_left()->set_seconds(1);
  Hear(left);
  look = Look();
  EXPECT_EQ(look.waiting, 1);
  EXPECT_EQ(look.fleet.ready, 2) << "the release has let it go";
}

TEST_F(FleetViewTest, WithoutAPlatformWhoWaitsForAReleaseIsKnownFromItsHeartbeat) {
  signs_.has_platform = false;
  v1::Heartbeat beat = BeatOf("a", 1);
  beat.mutable_standby()->set_release("opening");
  Hear(beat);
  Hear(BeatOf("b", 1));
  const FleetLook look = Look();
  EXPECT_EQ(look.waiting, 1);
  EXPECT_EQ(look.fleet.ready, 1);
  EXPECT_THAT(look.let_go_first, ElementsAre("b"));
}

// Otherwise each look would order as many again.
TEST_F(FleetViewTest, ThoseThatStartForTheStandbyAreNotOnTheirWayToWork) {
  signs_.state.wanted = 5;
  signs_.standby = 2;
  FleetLook look = Look();
  EXPECT_EQ(look.fleet.parked, 0);
  EXPECT_EQ(look.fleet.committed(), 3);
  EXPECT_EQ(look.live, 5);
  signs_.standby = 9;
  EXPECT_EQ(Look().fleet.committed(), 0);
}

TEST_F(FleetViewTest, LearnsTheSpeedOfABusyReplica) {
  Have("a");
  for (uint64_t sequence = 1; sequence <= 9; ++sequence) {
    Hear(BusyBeatOf("a", sequence, 10));
    LookAfter(absl::Seconds(2));
  }
  const scaling::policy::Estimates estimates = Look().estimates;
  EXPECT_DOUBLE_EQ(estimates.items_per_second, 20) << "it was busy half of the time";
  EXPECT_EQ(estimates.service_time, absl::Milliseconds(50));
  EXPECT_DOUBLE_EQ(estimates.cpu_share, 0.4);
  EXPECT_EQ(estimates.release, absl::ZeroDuration());
}

// Believed to have one task, they would seem slower than they are, and too many would start.
TEST_F(FleetViewTest, ExpectsOfTheNextReplicasWhatTheLastOnesDid) {
  Have("a");
  for (uint64_t sequence = 1; sequence <= 9; ++sequence) {
    Hear(BusyBeatOf("a", sequence, 10));
    LookAfter(absl::Seconds(2));
  }
  signs_.state = {};
  signs_.workers.clear();
  const FleetLook look = LookAfter(absl::Minutes(5));
  EXPECT_EQ(look.fleet.committed(), 0);
  EXPECT_EQ(look.fleet.tasks, 2);
  EXPECT_DOUBLE_EQ(look.estimates.items_per_second, 20);
}

TEST_F(FleetViewTest, LearnsNothingOfTheSameHeartbeatTwice) {
  Have("a");
  Hear(BusyBeatOf("a", 1, 10));
  for (int i = 0; i < 20; ++i) Look();
  // One sample counts with 85 % of its value; after more than seven the estimate is the 25th
  // percentile.
  EXPECT_DOUBLE_EQ(Look().estimates.items_per_second, 17);
}

TEST_F(FleetViewTest, LearnsTheSpeedOfLongItemsFromTheTimeThatTheyTake) {
  Have("a");
  v1::Heartbeat beat = BusyBeatOf("a", 1, 0.5);  // one item in two seconds
  beat.mutable_window()->set_seconds(2);
  v1::JobLoad* const job = beat.mutable_jobs(0);
  *job->mutable_service_time()->mutable_mean() = base::ToProto(absl::Seconds(1.6));
  Hear(beat);
  EXPECT_DOUBLE_EQ(Look().estimates.items_per_second, 0.85 * 2 / 1.6) << "two threads";
}

// A heartbeat of two seconds, in which an item of twenty ended: half an item a second is no speed.
TEST_F(FleetViewTest, LearnsNoSpeedFromItemsThatWereBegunBeforeTheirHeartbeat) {
  Have("a");
  const auto ended = [](uint64_t sequence, int items, int running) {
    v1::Heartbeat beat = BusyBeatOf("a", sequence, items / 2.0);
    *beat.mutable_window() = base::ToProto(absl::Seconds(2));
    v1::JobLoad* const job = beat.mutable_jobs(0);
    job->set_threads(running);
    job->set_threads_max(8);
    job->set_threads_busy(0);
    job->set_busy_share(1);
    *job->mutable_service_time()->mutable_mean() = base::ToProto(absl::Seconds(20));
    return beat;
  };
  Hear(ended(1, 1, 0));
  EXPECT_LE(Look().estimates.items_per_second, 1.0 / 20);
  Hear(ended(2, 8, 0));
  EXPECT_LE(LookAfter(absl::Seconds(10)).estimates.items_per_second, 8.0 / 20);
}

TEST_F(FleetViewTest, LearnsTheSpeedOfManyItemsFromTheirNumber) {
  Have("a");
  v1::Heartbeat beat = BusyBeatOf("a", 1, 10);
  beat.mutable_window()->set_seconds(2);
  Hear(beat);
  EXPECT_DOUBLE_EQ(Look().estimates.items_per_second, 17) << "what lies between items counts, too";
}

// Its tasks come and go with the work. Otherwise a batch after an hour of single items would start
// eight times as many replicas as it needs.
TEST_F(FleetViewTest, AQuietHourDoesNotHideWhatAllTasksDo) {
  Have("a");
  uint64_t sequence = 0;
  const auto speed_after = [&](int running, double rate) {
    v1::Heartbeat beat = BusyBeatOf("a", ++sequence, rate);
    beat.mutable_window()->set_seconds(2);
    beat.mutable_jobs(0)->set_threads_max(8);
    beat.mutable_jobs(0)->set_threads(running);
    Hear(beat);
    return LookAfter(absl::Seconds(2)).estimates.items_per_second;
  };
  for (int i = 0; i < 9; ++i) speed_after(8, 80);
  EXPECT_DOUBLE_EQ(speed_after(8, 80), 160) << "it was busy half of the time";
  for (int i = 0; i < 100; ++i) speed_after(1, 10);
  EXPECT_DOUBLE_EQ(speed_after(1, 10), 160);
}

TEST_F(FleetViewTest, LearnsNoSpeedOfReplicasThatBeginToWork) {
  Have("a");
  for (uint64_t sequence = 1; sequence <= 9; ++sequence) {
    Hear(BusyBeatOf("a", sequence, 10));
    LookAfter(absl::Seconds(2));
  }
  for (const uint64_t sequence : {1, 2, 3}) {
    for (const char* name : {"b", "c", "d", "e"}) {
      if (sequence == 1) Have(name);
      Hear(BusyBeatOf(name, sequence, 1));
    }
    EXPECT_DOUBLE_EQ(LookAfter(absl::Milliseconds(600)).estimates.items_per_second, 20);
  }
  signs_.now += absl::Milliseconds(200);
  for (const char* name : {"b", "c", "d", "e"}) Hear(BusyBeatOf(name, 4, 1));
  EXPECT_DOUBLE_EQ(Look().estimates.items_per_second, 2) << "a quarter is as slow as that";
}

TEST_F(FleetViewTest, LearnsColdStartsFromTheFirstHeartbeatsOfThoseItSawStart) {
  for (const char* name : {"a", "b", "c", "d", "e"}) Have(name, ReplicaState::kStarting);
  Look();
  signs_.now += absl::Seconds(50);
  for (const char* name : {"a", "b", "c", "d", "e"}) Hear(BeatOf(name, 1));
  EXPECT_EQ(Look().estimates.cold_start, absl::Seconds(50));
}

// One slow start kept a pool's standby until the agent started anew.
TEST_F(FleetViewTest, ForgetsASlowStartOfAWeekAgo) {
  Have("a", ReplicaState::kStarting);
  Look();
  signs_.now += absl::Seconds(90);
  Hear(BeatOf("a", 1));
  EXPECT_EQ(Look().estimates.cold_start, absl::Seconds(90));
  signs_.now += scaling::policy::kStartLifetime;
  EXPECT_EQ(Look().estimates.cold_start, absl::Seconds(90));
  signs_.now += absl::Seconds(1);
  EXPECT_EQ(Look().estimates.cold_start, absl::Seconds(30)) << "as the operator says";
}

TEST_F(FleetViewTest, LearnsNoColdStartOfThoseThatWereThereBefore) {
  signs_.state.replicas = {{"a", "pod-a", ReplicaState::kReady, now_ - absl::Hours(5)}};
  signs_.state.wanted = 1;
  Hear(BeatOf("a", 1000));
  EXPECT_EQ(Look().estimates.cold_start, absl::Seconds(30));
}

// Otherwise an outage of the bus would turn into a cold start of hours.
TEST_F(FleetViewTest, LearnsNoColdStartOfOneThatFellSilentAndIsHeardAgain) {
  Have("a", ReplicaState::kStarting);
  Look();
  Hear(BeatOf("a", 1));
  EXPECT_EQ(Look().fleet.ready, 1);
  signs_.now += absl::Hours(3);
  Hear(BeatOf("a", 2), /*silent=*/true);
  EXPECT_THAT(LookAfter(absl::ZeroDuration()).fleet.starting, SizeIs(1));
  EXPECT_THAT(LookAfter(absl::Seconds(10)).fleet.starting, SizeIs(1));
  Hear(BeatOf("a", 3));
  const FleetLook look = Look();
  EXPECT_EQ(look.fleet.ready, 1);
  EXPECT_EQ(look.estimates.cold_start, absl::Seconds(30));
}

// A pool may be there before its first job is. An hour's wait for one is no slow start.
TEST_F(FleetViewTest, LearnsNoColdStartOfOneThatWaitedForAJob) {
  Have("a", ReplicaState::kStarting);
  Look();
  v1::Heartbeat beat = BeatOf("a", 1);
  beat.clear_jobs();
  for (int i = 0; i < 1800; ++i) {
    beat.set_sequence(i + 1);
    signs_.now += absl::Seconds(2);
    Hear(beat);
    Look();
  }
  beat.add_jobs()->set_trouble("its handler is not there yet");
  Hear(beat);
  LookAfter(absl::Seconds(2));
  Hear(BeatOf("a", 2000));
  const FleetLook look = LookAfter(absl::Seconds(2));
  EXPECT_EQ(look.fleet.ready, 1);
  EXPECT_EQ(look.estimates.cold_start, absl::Seconds(30));
}

// A processor sends its first heartbeat before it has looked for jobs, and a handler may need long
// to start.
TEST_F(FleetViewTest, LearnsTheColdStartOfOneWhoseHandlerStartsSlowly) {
  Have("a", ReplicaState::kStarting);
  Look();
  v1::Heartbeat beat = BeatOf("a", 1);
  beat.clear_jobs();
  Hear(beat);
  LookAfter(absl::Seconds(5));
  beat.add_jobs()->set_trouble("its handler is not there yet");
  Hear(beat);
  LookAfter(absl::Seconds(5));
  LookAfter(absl::Seconds(80));
  Hear(BeatOf("a", 2));
  EXPECT_EQ(Look().estimates.cold_start, absl::Seconds(90));
}

// Otherwise a platform whose clock is behind would have the agent start others in the place of all
// that start, and learn cold starts that are longer than the promise.
TEST_F(FleetViewTest, TakesNoClockOfThePlatformForItsOwn) {
  for (const absl::Duration off : {absl::Minutes(-5), absl::Minutes(5)}) {
    FleetView view(SpeedOptions{absl::Seconds(30), 1}, 0);
    signs_ = FleetSigns();
    signs_.now = signs_.ordered = now_;
    signs_.is_seen = true;
    view.Look(signs_);
    signs_.now = now_ + absl::Seconds(9);
    view.Look(signs_);
    signs_.now = now_ + absl::Seconds(10);
    for (const char* name : {"a", "b", "c", "d", "e"}) {
      Have(name, ReplicaState::kStarting);
      signs_.state.replicas.back().started += off;
    }
    for (const absl::Time due : view.Look(signs_).fleet.starting) {
      EXPECT_GE(due, now_ + absl::Seconds(30)) << "none was there a second ago";
      EXPECT_LE(due, now_ + absl::Seconds(40));
    }
    signs_.now = signs_.ordered = now_ + absl::Seconds(30);  // something else was ordered
    for (const char* name : {"a", "b", "c", "d", "e"}) Hear(BeatOf(name, 1));
    const absl::Duration cold_start = view.Look(signs_).estimates.cold_start;
    EXPECT_GE(cold_start, absl::Seconds(20));
    EXPECT_LE(cold_start, absl::Seconds(35));
  }
}

// The next pod of a StatefulSet has the name of the one before it.
TEST_F(FleetViewTest, TakesTheNextReplicaOfANameForANewOne) {
  Have("a");
  Hear(BeatOf("a", 1));
  Look();
  signs_.now += absl::Hours(5);
  signs_.workers.clear();
  signs_.state.replicas = {{"a", "pod-a", ReplicaState::kStarting, signs_.now}};
  EXPECT_THAT(Look().fleet.starting, ElementsAre(signs_.now + absl::Seconds(30)));
}

// A new leader may find replicas that are silent at this moment but have worked for hours.
TEST_F(FleetViewTest, LearnsNoColdStartOfAStartThatItHasNotSeen) {
  signs_.state.replicas = {{"a", "pod-a", ReplicaState::kReady, now_ - absl::Hours(5)}};
  signs_.state.wanted = 1;
  EXPECT_THAT(Look().fleet.starting, SizeIs(1));
  signs_.has_platform = false;
  LookAfter(absl::Minutes(1));
  signs_.has_platform = true;
  signs_.state.replicas.front().started = signs_.now;
  EXPECT_THAT(LookAfter(absl::Hours(1)).fleet.starting, SizeIs(1));
  Hear(BeatOf("a", 1000));
  EXPECT_EQ(Look().estimates.cold_start, absl::Seconds(30));
}

// An earlier leader may have ordered these replicas.
TEST_F(FleetViewTest, WhatThePlatformIsToldMeanwhileStartsThen) {
  signs_.ordered = now_ - absl::Hours(5);
  Look();
  signs_.state.wanted = 2;
  const absl::Time told = now_ + absl::Seconds(5);
  const auto due = ElementsAre(told + absl::Seconds(30), told + absl::Seconds(30));
  EXPECT_THAT(LookAfter(absl::Seconds(5)).fleet.starting, due);
  EXPECT_THAT(LookAfter(absl::Seconds(7)).fleet.starting, due);
}

TEST_F(FleetViewTest, ThrottlingIsAShareOfTheCalls) {
  Have("a");
  v1::Heartbeat beat = BusyBeatOf("a", 1, 10);
  beat.mutable_jobs(0)->set_throttled(10);
  Hear(beat);
  EXPECT_DOUBLE_EQ(Look().estimates.throttled_share, 0.5);
}

TEST_F(FleetViewTest, FiguresThatNobodyCouldMeanDoNoHarm) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinite = std::numeric_limits<double>::infinity();
  Have("a");
  uint64_t sequence = 0;
  for (const double figure : {nan, infinite, -infinite, -1.0, 1e308}) {
    v1::Heartbeat beat = BusyBeatOf("a", ++sequence, figure);
    v1::JobLoad* const job = beat.mutable_jobs(0);
    job->set_busy_share(figure);
    job->set_threads_max(std::numeric_limits<int>::min());
    job->set_throttled(std::numeric_limits<int64_t>::min());
    job->set_attempts(std::numeric_limits<int64_t>::min());
    job->mutable_partitions(0)->set_unsettled(std::numeric_limits<int64_t>::max());
    job->add_partitions()->set_unsettled(std::numeric_limits<int64_t>::max());
    job->mutable_service_time()->mutable_mean()->set_seconds(std::numeric_limits<int64_t>::max());
    beat.set_cpu_cores(figure);
    Hear(beat);
    const FleetLook look = Look();
    EXPECT_EQ(look.fleet.ready, 1);
    EXPECT_GE(look.fleet.tasks, 1);
    EXPECT_GE(look.estimates.cpu_share, 0);
    EXPECT_LE(look.estimates.cpu_share, 1);
    EXPECT_EQ(look.estimates.throttled_share, 0);
  }
  v1::Heartbeat beat = BusyBeatOf("a", ++sequence, 10);
  beat.mutable_jobs(0)->set_threads_max(std::numeric_limits<int>::max());
  Hear(beat);
  EXPECT_EQ(Look().fleet.tasks, kMaxTasks);
}

}  // namespace
}  // namespace muster::scaling_agent
