// What a loop does when what it needs does not work.
#include <string>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/scaling-agent/target_loop_fixture.h"

namespace muster::scaling_agent {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class TargetLoopFaultsTest : public TargetLoopFixture {};

TEST_F(TargetLoopFaultsTest, NobodyGoesBeforeAllCanHaveBeenHeard) {
  HaveReplicas({"a", "b"});
  UseRules("constraints: [{name: none, rank: 1, target: billing, range: [0, 0]}]\n");
  Second(5);
  EXPECT_EQ(Last(), "2 no-metrics") << book_.Last("billing")->explanation();
  EXPECT_THAT(book_.Last("billing")->explanation(), HasSubstr("nobody goes"));
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
  working_.clear();  // nothing is heard of them any more
  Second(60);
  for (const int replicas : actuator_.ordered()) EXPECT_GE(replicas, 2);
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
  const v1::ScalingDecision refused = *book_.Last("billing");
  EXPECT_EQ(refused.action().state(), v1::ScalingAction::STATE_FAILED);
  EXPECT_THAT(loop_->Status().trouble(), HasSubstr("lacks verb 'update'"));
  actuator_.FailApply(absl::OkStatus());
  Second(20);
  EXPECT_EQ(book_.Find(refused.id(), "")->decision().action().state(),
            v1::ScalingAction::STATE_DONE);
  EXPECT_EQ(loop_->Status().trouble(), "");
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
  EXPECT_EQ(book_.Last("billing")->replicas(), 2) << "nobody goes";
  actuator_.barrier()->Open();
  acts.join();
}

TEST_F(TargetLoopFaultsTest, AWallClockThatIsPutBackDoesNotStopDecisions) {
  Settle();
  clock_.StepWallClock(-absl::Seconds(20));
  Second();
  loop_->HearWork("in-0", 5);
  loop_->Decide();
  EXPECT_EQ(Last(), "1 deadline");
  clock_.StepWallClock(-absl::Hours(20));
  Second(30);
  EXPECT_EQ(loop_->snapshot()->observation.now, clock_.Now() - absl::Seconds(1));
}

TEST_F(TargetLoopFaultsTest, ManyAnnouncementsBetweenTwoDecisionsAreBounded) {
  Settle();
  for (size_t i = 0; i < kMaxPendingAnnouncements + 100; ++i) loop_->HearWork("in-0", 1);
  loop_->HearWork("in-0", 0);
  loop_->HearWork("in-0", -5);
  loop_->Decide();
  EXPECT_EQ(Last(), "1 deadline");
}

}  // namespace
}  // namespace muster::scaling_agent
