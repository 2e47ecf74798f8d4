// SPDX-License-Identifier: Apache-2.0
#include "services/scaling-agent/target_loop.h"

#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/base/log_capture.h"
#include "tests/fakes/scaling-agent/target_loop_fixture.h"

namespace muster::scaling_agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class TargetLoopTest : public TargetLoopFixture {};

TEST_F(TargetLoopTest, StartsTheFirstReplicaForWorkThatWasAnnounced) {
  Settle();
  EXPECT_EQ(Last(), "0 nothing");
  EXPECT_THAT(actuator_.ordered(), IsEmpty());
  loop_->OnWork("in-0", 5);
  loop_->Decide();
  EXPECT_EQ(Last(), "1 deadline");
  EXPECT_EQ(decision_log_.Last("billing")->action().state(), v1::ScalingAction::STATE_ORDERED);
  loop_->Act();
  EXPECT_THAT(actuator_.ordered(), ElementsAre(1));
  const v1::ScalingDecision done = *decision_log_.Last("billing");
  EXPECT_EQ(done.action().state(), v1::ScalingAction::STATE_DONE);
  EXPECT_EQ(done.action().after(), 1);
  EXPECT_THAT(done.explanation(), HasSubstr("Grow from 0 to 1 replica."));
  EXPECT_EQ(actuator_.orders().front().decision, done.id());
  EXPECT_EQ(actuator_.orders().front().fencing_token, 1);
}

TEST_F(TargetLoopTest, WhatAnotherAutoscalerScalesIsDecidedAndNotOrdered) {
  UseRules("", "act", ", actuator: external");
  Settle();
  queues_.Put("in-0", 5);
  Second();
  EXPECT_EQ(Last(), "1 deadline");
  EXPECT_EQ(loop_->desired(), 1);
  EXPECT_EQ(decision_log_.Last("billing")->action().state(), v1::ScalingAction::STATE_NOT_ASKED);
  EXPECT_THAT(actuator_.ordered(), IsEmpty());
  UseRules("");
  Second();
  EXPECT_THAT(actuator_.ordered(), ElementsAre(1)) << "the agent has taken over";
}

TEST_F(TargetLoopTest, WorkWhoseTriggerWasLostIsSeenInTheStatistics) {
  Settle();
  queues_.Put("in-0", 5);
  Second();
  EXPECT_EQ(Last(), "1 deadline");
}

// The promise is about the whole batch: with what is in the full queue alone it would come out too
// late.
TEST_F(TargetLoopTest, WorkThatAnInitiatorHoldsBackFromAFullQueueCounts) {
  HaveReplicas({"a"});
  beating_.clear();
  const auto decide_with = [this](int64_t held_back, const std::string& queue) {
    for (int i = 0; i < 10; ++i) {
      roster_.OnHeartbeat(BusyBeatOf("a", ++beats_, 100));
      v1::Heartbeat beat;
      beat.mutable_instance()->set_role(v1::ROLE_INITIATOR);
      beat.mutable_instance()->set_instance("i");
      beat.set_sequence(++beats_);
      v1::HeldBack* const held = beat.add_held_back();
      held->set_queue(queue);
      held->set_items(held_back);
      roster_.OnHeartbeat(beat);
      Second();
    }
    return decision_log_.Last("billing")->replicas();
  };
  queues_.Put("in-0", 500);
  EXPECT_EQ(decide_with(20'000, "acme/other-0"), 1);
  EXPECT_EQ(decide_with(20'000, "else/in-0"), 1);
  EXPECT_EQ(decide_with(20'000, "acme/in-0"), 2);
  EXPECT_EQ(loop_->snapshot()->observation.queues.front().ready, 20'500);
}

TEST_F(TargetLoopTest, AnnouncementsThatNobodyCouldMeanHideNoWork) {
  HaveReplicas({"a"});
  beating_.clear();
  for (int i = 0; i < 10; ++i) {
    roster_.OnHeartbeat(BusyBeatOf("a", ++beats_, 100));
    Second();
  }
  for (size_t i = 0; i < kMaxPendingAnnouncements; ++i) loop_->OnWork("in-0", 1);
  for (int i = 0; i < 2; ++i) loop_->OnWork("in-0", std::numeric_limits<int64_t>::max());
  loop_->Decide();
  EXPECT_EQ(Last(), "10 max");
}

TEST_F(TargetLoopTest, OthersWorkIsNone) {
  Settle();
  loop_->OnWork("other-0", 5);
  loop_->OnWork("in-x", 5);
  Second(2);
  EXPECT_EQ(Last(), "0 nothing");
}

TEST_F(TargetLoopTest, KeepsOneDecisionForAsLongAsItSaysTheSame) {
  Settle();
  Second(20);
  EXPECT_EQ(decision_log_.List("billing", 100).size(), 1u);
}

TEST_F(TargetLoopTest, IdleReplicasAreLetGoByTheirNames) {
  HaveReplicas({"a", "b"});
  Settle();
  Second(30);
  EXPECT_EQ(Last().substr(0, 1), "0");
  ASSERT_FALSE(actuator_.orders().empty());
  EXPECT_EQ(actuator_.ordered().back(), 0);
  EXPECT_THAT(actuator_.orders().front().let_go_first, ::testing::UnorderedElementsAre("a", "b"));
}

// An earlier leader ordered the replicas: they will come, so the new leader must not order them
// again.
TEST_F(TargetLoopTest, ANewLeaderCountsOnWhatWasOrderedAndDoesNotShowYet) {
  actuator_.SetState({5, {}});
  queues_.Put("in-0", 5);
  const absl::Time began = clock_.Now();
  Second(2);
  const std::vector<absl::Time> starting = loop_->snapshot()->observation.fleet.starting;
  EXPECT_EQ(starting, std::vector<absl::Time>(5, began + absl::Seconds(10)));
  Second(8);
  for (const int replicas : actuator_.ordered()) EXPECT_LE(replicas, 5);
}

TEST_F(TargetLoopTest, GrowsInOneActionByWhatItHasLearned) {
  HaveReplicas({"a"});
  beating_.clear();
  working_ = {"a"};
  Settle();
  // A replica does 20 items a second: 4,000 items within a minute need about four.
  queues_.Put("in-0", 1000);
  for (int i = 0; i < 3; ++i) queues_.Put("in-0", 1000);
  loop_->OnWork("in-0", 4000);
  loop_->Decide();
  loop_->Act();
  ASSERT_EQ(actuator_.ordered().size(), 1u);
  EXPECT_GE(actuator_.ordered().front(), 4);
  EXPECT_LE(actuator_.ordered().front(), 7);
  Second(5);
  EXPECT_EQ(actuator_.ordered().size(), 1u) << "those that start are not ordered again";
}

TEST_F(TargetLoopTest, AnOverrideHoldsUntilItExpiresOrIsCleared) {
  Settle();
  ASSERT_TRUE(overrides_.Set({"billing", 4, clock_.Now() + absl::Seconds(30), "ops"}).ok());
  Second();
  EXPECT_EQ(Last(), "4 override");
  EXPECT_THAT(decision_log_.Last("billing")->explanation(),
              HasSubstr("That was ops. It holds until "));
  EXPECT_EQ(actuator_.ordered().back(), 4);
  EXPECT_EQ(loop_->Status().override().replicas(), 4);
  clock_.Advance(absl::Seconds(30));
  Second();
  EXPECT_NE(Last(), "4 override");
  EXPECT_FALSE(loop_->Status().has_override());
}

TEST_F(TargetLoopTest, AnOverrideBeyondTheBoundsOfChangedRulesIsHeldToThem) {
  Settle();
  ASSERT_TRUE(overrides_.Set({"billing", 400, clock_.Now() + absl::Hours(1), ""}).ok());
  Second();
  EXPECT_EQ(Last(), "10 override");
}

TEST_F(TargetLoopTest, StandbyReplicasAreOrderedOnTopAndNotAgainAndAgain) {
  UseRules("constraints: [{name: warm, rank: 1, target: billing, standby: 2}]\n");
  Settle();
  EXPECT_THAT(actuator_.ordered(), ElementsAre(2));
  HaveReplicas({"a", "b"});
  Second(40);
  EXPECT_THAT(actuator_.ordered(), ElementsAre(2));
  const v1::ReplicaCounts counts = loop_->Status().replicas();
  EXPECT_EQ(counts.standby(), 2);
  EXPECT_EQ(counts.ready(), 0);
}

TEST_F(TargetLoopTest, ANewLeaderKeepsTheStandbyReplicasItFinds) {
  UseRules("constraints: [{name: warm, rank: 1, target: billing, standby: 2}]\n");
  HaveReplicas({"a", "b"});
  Second(40);
  EXPECT_THAT(actuator_.ordered(), IsEmpty());
}

TEST_F(TargetLoopTest, ReplicasThatWaitForAReleaseAreNeitherLetGoOfNorDoubled) {
  HaveReplicas({"a", "b"});
  waiting_ = std::exchange(beating_, {});
  Settle();
  Second(60);
  EXPECT_THAT(actuator_.ordered(), IsEmpty()) << "there is no work, and they stay";
  EXPECT_EQ(loop_->desired(), 2);
  queues_.Put("in-0", 5);
  Second(60);
  EXPECT_THAT(actuator_.ordered(), IsEmpty()) << "the work needs one, and there are two";
  const v1::ReplicaCounts counts = loop_->Status().replicas();
  EXPECT_EQ(counts.ready(), 0);
  EXPECT_EQ(counts.standby(), 2);
}

TEST_F(TargetLoopTest, WorkingReplicasComeAndGoBesideThoseThatWaitForARelease) {
  HaveReplicas({"a", "b", "c"});
  beating_ = {"c"};
  waiting_ = {"a", "b"};
  Settle();
  Second(60);
  EXPECT_THAT(actuator_.ordered(), ElementsAre(2)) << "the one without work goes";
  EXPECT_THAT(actuator_.orders().back().let_go_first, ElementsAre("c"));
}

TEST_F(TargetLoopTest, WhoDoesNotLeadDecidesNothingAndAsksNobody) {
  token_ = std::nullopt;
  queues_.Put("in-0", 5);
  Second(10);
  EXPECT_EQ(Last(), "");
  EXPECT_THAT(actuator_.ordered(), IsEmpty());
  EXPECT_EQ(loop_->snapshot(), std::nullopt);
}

TEST_F(TargetLoopTest, WhoComesToLeadKnowsWhatTheBudgetHasLeft) {
  UseRules("constraints: [{name: few, rank: 1, target: billing, budget: 30 replica-min/h}]\n");
  HaveReplicas({"a", "b"});
  const auto left_for = [this] {
    const std::string id = decision_log_.Last("billing")->id();
    return decision_log_.Find(id, "billing")->inputs().budget_cap();
  };
  token_ = std::nullopt;
  Second(300);
  token_ = HeldToken{5};
  Second(2);
  EXPECT_EQ(left_for(), 3) << "10 of 30 minutes are spent, and the rest is spread over five";
  token_ = std::nullopt;
  Second(60);
  token_ = HeldToken{9};
  Second(2);
  EXPECT_EQ(left_for(), 3) << "12 of 30";
}

TEST_F(TargetLoopTest, AnotherTermBeginsWithItsOwnTokenAndLaterIds) {
  Settle();
  const std::string first = decision_log_.Last("billing")->id();
  token_ = std::nullopt;
  Second(3);
  token_ = HeldToken{5};
  queues_.Put("in-0", 5);
  Second(2);
  EXPECT_EQ(first, "billing-1");
  const auto all = decision_log_.List("billing", 100);
  EXPECT_EQ(all[all.size() - 2].id(), "billing-101") << "the first one of the second term";
  EXPECT_EQ(actuator_.orders().back().fencing_token, 5);
}

TEST_F(TargetLoopTest, WhoOnlyObservesOrdersNothing) {
  UseRules("", "observe");
  queues_.Put("in-0", 5);
  Second(3);
  EXPECT_EQ(Last(), "1 deadline");
  EXPECT_EQ(decision_log_.Last("billing")->action().state(), v1::ScalingAction::STATE_NOT_ASKED);
  EXPECT_THAT(actuator_.ordered(), IsEmpty());
  UseRules("", "act");
  Second();
  EXPECT_THAT(actuator_.ordered(), ElementsAre(1));
}

TEST_F(TargetLoopTest, TellsWhereItStands) {
  HaveReplicas({"a"});
  queues_.Put("in-0", 3);
  const absl::Time put = clock_.Now();
  Second(2);
  const v1::ScalingTarget status = loop_->Status();
  EXPECT_EQ(status.target(), "billing");
  EXPECT_THAT(status.queues(), ElementsAre("in"));
  EXPECT_EQ(status.ready(), 3);
  EXPECT_EQ(status.replicas().ready(), 1);
  EXPECT_EQ(status.sla().seconds(), 60);
  EXPECT_EQ(base::FromProto(status.oldest_deadline()), put + absl::Minutes(1));
  EXPECT_EQ(status.trouble(), "");
  EXPECT_EQ(loop_->snapshot()->observation.queues.front().ready, 3);
}

TEST_F(TargetLoopTest, TellsHowLateWorkIsByNowThoughItsDecisionStands) {
  HaveReplicas({"a"});
  beating_.clear();
  UseRules("constraints: [{name: one, rank: 1, target: billing, range: [0, 1]}]\n");
  for (int i = 0; i < 5; ++i) queues_.Put("in-0", 1000);
  int went_on = 0;
  for (int i = 0; i < 30; ++i) {
    const v1::ScalingDecision before = loop_->Status().decision();
    roster_.OnHeartbeat(BusyBeatOf("a", ++beats_, 10));
    Second();
    const v1::ScalingDecision now = loop_->Status().decision();
    if (now.id() != before.id()) continue;
    went_on += base::FromProto(now.late_by()) > base::FromProto(before.late_by()) ? 1 : 0;
    EXPECT_EQ(base::FromProto(now.decided()), base::FromProto(before.decided()));
  }
  EXPECT_GT(went_on, 0) << "nothing was done of it";
}

TEST_F(TargetLoopTest, PeopleAreToldWhereTheRulesAskForIt) {
  UseRules("", "notify");
  queues_.Put("in-0", 5);
  const base::LogCapture log;
  Second(3);
  EXPECT_THAT(log.lines(), ::testing::Contains(::testing::AllOf(HasSubstr("level=warning"),
                                                                HasSubstr("Grow from 0 to 1"))));
  EXPECT_THAT(actuator_.ordered(), IsEmpty());
}

}  // namespace
}  // namespace muster::scaling_agent
