// SPDX-License-Identifier: Apache-2.0

// A target's loop during failures of the stores, the bus and the platform.
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/scaling-agent/target_loop_fixture.h"

namespace muster::scaling_agent {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class TargetLoopFaultsTest : public TargetLoopFixture {
 protected:
  size_t Decisions() const { return decision_log_.List("billing", kKeptDecisions).size(); }
};

TEST_F(TargetLoopFaultsTest, NobodyGoesBeforeAllCanHaveBeenHeard) {
  HaveReplicas({"a", "b"});
  UseRules("constraints: [{name: none, rank: 1, target: billing, range: [0, 0]}]\n");
  Second(5);
  EXPECT_EQ(Last(), "2 no-metrics") << decision_log_.Last("billing")->explanation();
  EXPECT_THAT(decision_log_.Last("billing")->explanation(), HasSubstr("no replica is let go"));
  EXPECT_THAT(actuator_.ordered(), IsEmpty());
  Settle();
  EXPECT_EQ(actuator_.ordered().back(), 0);
}

TEST_F(TargetLoopFaultsTest, NobodyGoesWithoutStatistics) {
  HaveReplicas({"a", "b"});
  Second();
  queues_.store()->Fail(absl::UnavailableError("down"));
  Second(60);
  EXPECT_THAT(actuator_.ordered(), IsEmpty());
  EXPECT_THAT(loop_->Status().trouble(), HasSubstr("down"));
  queues_.store()->Fail(absl::OkStatus());
  Second(60);
  EXPECT_EQ(loop_->Status().trouble(), "");
  EXPECT_EQ(actuator_.ordered().back(), 0);
}

TEST_F(TargetLoopFaultsTest, AQueueThatTheRulesNameAndNobodyHasIsTroubleUntilItIsThere) {
  ASSERT_TRUE(queues_.store()->DeleteQueue({kTestAccount, "in-0"}).ok());
  Second(5);
  EXPECT_EQ(loop_->Status().trouble(), "");
  Second(20);
  EXPECT_THAT(loop_->Status().trouble(), HasSubstr("the rules name 'in'"));
  queues_.Create("in-0");
  Second(static_cast<int>(absl::ToInt64Seconds(kListPeriod)) + 1);
  EXPECT_EQ(loop_->Status().trouble(), "");
}

TEST_F(TargetLoopFaultsTest, NobodyGoesWhileTheActuatorShowsNothing) {
  HaveReplicas({"a", "b"});
  Second();
  actuator_.FailObserve(absl::UnavailableError("no route"));
  Second(60);
  EXPECT_THAT(actuator_.ordered(), IsEmpty());
  EXPECT_THAT(loop_->Status().trouble(), HasSubstr("no route"));
}

TEST_F(TargetLoopFaultsTest, OrdersNothingOfAPlatformThatItHasNeverSeen) {
  actuator_.FailObserve(absl::NotFoundError("no such deployment"));
  queues_.Put("in-0", 5);
  Second(20);
  EXPECT_EQ(Last(), "1 deadline");
  EXPECT_THAT(actuator_.ordered(), IsEmpty());
}

TEST_F(TargetLoopFaultsTest, SilentReplicasStayWhereTheyAre) {
  HaveReplicas({"a", "b"});
  working_ = {"a", "b"};
  beating_.clear();
  queues_.Put("in-0", 20);
  Settle();
  working_.clear();  // their heartbeats have stopped
  Second(60);
  for (const int replicas : actuator_.ordered()) EXPECT_GE(replicas, 2);
}

// An earlier agent took silent replicas for late starters, and started others in their place up to
// the maximum.
TEST_F(TargetLoopFaultsTest, WhenHeartbeatsStopItGrowsForWhatTheQueuesShowOnly) {
  HaveReplicas({"a", "b"});
  working_ = std::exchange(beating_, {});
  queues_.Put("in-0", 500);  // each replica does some 20 items a second
  Settle();
  ASSERT_THAT(Last(), StartsWith("2 "));
  const std::vector<std::string> all = std::exchange(working_, {});
  Second(25);
  EXPECT_THAT(Last(), StartsWith("2 ")) << decision_log_.Last("billing")->explanation();
  EXPECT_THAT(actuator_.ordered(), IsEmpty());
  EXPECT_THAT(loop_->Status().trouble(), HasSubstr("the heartbeats of most replicas do not come"));
  EXPECT_EQ(loop_->snapshot()->observation.fleet.ready, 2);

  for (int i = 0; i < 3; ++i) queues_.Put("in-0", 1000);
  Second();
  EXPECT_GT(decision_log_.Last("billing")->replicas(), 2);
  EXPECT_LT(decision_log_.Last("billing")->replicas(), 7)
      << decision_log_.Last("billing")->explanation();
  working_ = all;
  Second(3);
  EXPECT_EQ(loop_->Status().trouble(), "");
}

// While it has lost the lead, the loop decides nothing; afterwards it ignores all old data.
TEST_F(TargetLoopFaultsTest, AMinuteWithoutTheServerLetsNobodyGoBeforeAllIsSeenAgain) {
  UseRules("constraints: [{name: few, rank: 1, target: billing, range: [3, 9]}]\n");
  HaveReplicas({"a", "b", "c", "d", "e"});
  working_ = std::exchange(beating_, {});
  Settle();
  ASSERT_THAT(Last(), StartsWith("5 "));
  const size_t decided = Decisions();

  token_.reset();
  queues_.store()->Fail(absl::UnavailableError("no server"));
  const std::vector<std::string> all = std::exchange(working_, {});
  for (int i = 0; i < 60; ++i) {
    loop_->OnWork("in-0", 5000);
    Second();
  }
  EXPECT_EQ(Decisions(), decided);
  token_ = HeldToken{2};
  Second(3);  // it leads again, and neither queues nor replicas are seen yet
  queues_.store()->Fail(absl::OkStatus());
  Second(2);
  beating_ = all;  // the agent sees idle replicas
  Second(2);
  EXPECT_THAT(actuator_.ordered(), IsEmpty());
  EXPECT_THAT(Last(), StartsWith("5 ")) << decision_log_.Last("billing")->explanation();
  EXPECT_LE(Decisions() - decided, 3u) << "what was put before the outage is old";
  Second(120);
  EXPECT_EQ(actuator_.ordered().back(), 3) << "the floor";
  for (const int replicas : actuator_.ordered()) EXPECT_GE(replicas, 3);
}

// The records may be in another store: then the agent keeps the lead while everything else is
// unavailable.
TEST_F(TargetLoopFaultsTest, AMinuteInTheDarkKeepsWhatIsThere) {
  UseRules("constraints: [{name: few, rank: 1, target: billing, range: [3, 9]}]\n");
  HaveReplicas({"a", "b", "c", "d", "e"});
  working_ = std::exchange(beating_, {});
  Settle();
  queues_.store()->Fail(absl::UnavailableError("no server"));
  const std::vector<std::string> all = std::exchange(working_, {});
  Second(60);
  EXPECT_THAT(actuator_.ordered(), IsEmpty());
  beating_ = all;
  Second(5);
  EXPECT_THAT(actuator_.ordered(), IsEmpty()) << "they idle, and the queues are not seen";
  queues_.store()->Fail(absl::OkStatus());
  Second(120);
  EXPECT_EQ(actuator_.ordered().back(), 3);
  for (const int replicas : actuator_.ordered()) EXPECT_GE(replicas, 3);
}

TEST_F(TargetLoopFaultsTest, WaitsForTheOverridesBeforeItDecides) {
  overrides_.Forget();
  queues_.Put("in-0", 5);
  Second(3);
  EXPECT_EQ(Last(), "");
  ASSERT_TRUE(overrides_.Refresh().ok());
  Second();
  EXPECT_EQ(Last(), "1 deadline");
}

TEST_F(TargetLoopFaultsTest, WithoutTheStoreThatHasIdsNothingIsDecided) {
  for (int i = 0; i < 100; ++i) sync_.FailNextGet(absl::UnavailableError("down"));
  queues_.Put("in-0", 5);
  Second(3);
  EXPECT_EQ(Last(), "");
}

TEST_F(TargetLoopFaultsTest, AnActuatorThatRefusesIsTroubleAndDoesNotStopDecisions) {
  Settle();
  actuator_.FailApply(absl::PermissionDeniedError("lacks verb 'update'"));
  queues_.Put("in-0", 5);
  Second(5);
  const v1::ScalingDecision refused = *decision_log_.Last("billing");
  EXPECT_EQ(refused.action().state(), v1::ScalingAction::STATE_FAILED);
  EXPECT_THAT(loop_->Status().trouble(), HasSubstr("lacks verb 'update'"));
  actuator_.FailApply(absl::OkStatus());
  Second(20);
  EXPECT_EQ(decision_log_.Find(refused.id(), "")->decision().action().state(),
            v1::ScalingAction::STATE_DONE);
  EXPECT_EQ(loop_->Status().trouble(), "");
}

TEST_F(TargetLoopFaultsTest, ADecisionThatWasOvertakenHasNotFailed) {
  Settle();
  actuator_.FailApply(absl::AbortedError("the order has expired"));
  queues_.Put("in-0", 5);
  Second(5);
  EXPECT_EQ(decision_log_.Last("billing")->action().state(), v1::ScalingAction::STATE_SUPERSEDED);
}

TEST_F(TargetLoopFaultsTest, AnActuatorThatHangsDoesNotStopDecisions) {
  HaveReplicas({"a", "b"});
  Settle();
  actuator_.barrier()->Shut();
  std::thread acts([this] { loop_->Act(); });
  actuator_.barrier()->AwaitSomebody();
  clock_.Advance(absl::Minutes(1));
  loop_->LookAtQueues();
  loop_->Decide();
  EXPECT_EQ(loop_->snapshot()->observation.now, clock_.Now());
  EXPECT_THAT(loop_->Status().trouble(), HasSubstr("does not answer"));
  EXPECT_EQ(decision_log_.Last("billing")->replicas(), 2) << "nobody goes";
  actuator_.barrier()->Open();
  acts.join();
}

TEST_F(TargetLoopFaultsTest, AWallClockThatIsPutBackDoesNotStopDecisions) {
  Settle();
  clock_.StepWallClock(-absl::Seconds(20));
  Second();
  loop_->OnWork("in-0", 5);
  loop_->Decide();
  EXPECT_EQ(Last(), "1 deadline");
  clock_.StepWallClock(-absl::Hours(20));
  Second(30);
  EXPECT_EQ(loop_->snapshot()->observation.now, clock_.Now() - absl::Seconds(1));
}

TEST_F(TargetLoopFaultsTest, ManyAnnouncementsBetweenTwoDecisionsAreBounded) {
  Settle();
  for (size_t i = 0; i < kMaxPendingAnnouncements + 100; ++i) loop_->OnWork("in-0", 1);
  loop_->OnWork("in-0", 0);
  loop_->OnWork("in-0", -5);
  loop_->Decide();
  EXPECT_EQ(Last(), "1 deadline");
}

}  // namespace
}  // namespace muster::scaling_agent
