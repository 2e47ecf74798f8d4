#include "services/scaling-agent/target_loop.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/fake_clock.h"
#include "muster/scaling_rules/rules_file.h"
#include "muster/sync/testing/memory_sync_store.h"
#include "services/scaling-agent/agent_fixture.h"
#include "services/scaling-agent/limits.h"

namespace muster::scaling_agent {
namespace {

using actuator::ReplicaState;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A target of ten replicas at most, of one second each: its loop, whose steps the test takes.
class TargetLoopTest : public ::testing::Test {
 protected:
  TargetLoopTest() {
    queues_.Create("in-0");
    EXPECT_TRUE(overrides_.Refresh().ok());
    UseRules("");
    MakeLoop();
  }

  static std::shared_ptr<const RulesInForce> RulesOf(const std::string& more,
                                                     const std::string& mode = "act") {
    const std::string text = absl::StrCat(
        "mode: ", mode,
        "\ntargets: {billing: {kind: process, name: p, queues: [in], sla: {max: 60s}, max: 10}}\n",
        more);
    auto rules = scaling_rules::ParseRules(text, "rules");
    EXPECT_TRUE(rules.ok()) << rules.status();
    return std::make_shared<const RulesInForce>(
        RulesInForce{std::make_shared<const scaling_rules::Rules>(*std::move(rules)), text, 1});
  }
  void UseRules(const std::string& more, const std::string& mode = "act") {
    rules_ = RulesOf(more, mode);
    if (loop_ != nullptr) loop_->UseRules(rules_);
  }
  void MakeLoop() {
    LoopDependencies deps;
    deps.queues = queues_.store();
    deps.sync = &sync_;
    deps.actuator = &actuator_;
    deps.overrides = &overrides_;
    deps.book = &book_;
    deps.clock = &clock_;
    deps.token = [this] { return token_; };
    deps.roster = [this] { return roster_.List(v1::ROLE_PROCESSOR); };
    LoopOptions options;
    options.account = kTestAccount;
    options.speed = {absl::Seconds(10), 4};
    loop_ = std::make_unique<TargetLoop>(rules_->rules->targets.front(), options, deps, rules_);
  }

  // As its threads would, one second later.
  void Second(int seconds = 1) {
    for (int i = 0; i < seconds; ++i) {
      for (const std::string& name : beating_) roster_.Hear(BeatOf(name, ++beats_));
      for (const std::string& name : working_) roster_.Hear(BusyBeatOf(name, ++beats_, 10));
      loop_->LookAtQueues();
      loop_->FillIds().IgnoreError();
      loop_->Decide();
      loop_->FillIds().IgnoreError();  // beginning a term has dropped them
      loop_->Decide();
      loop_->Act();
      clock_.Advance(absl::Seconds(1));
    }
  }
  // Long enough that all can have been heard.
  void Settle() { Second(static_cast<int>(absl::ToInt64Seconds(kSettleTime)) + 1); }
  // Replicas that the platform has, of which those that are named send heartbeats.
  void HaveReplicas(std::vector<std::string> names) {
    actuator::TargetState state;
    state.wanted = static_cast<int>(names.size());
    for (const std::string& name : names) {
      state.replicas.push_back({name, name, ReplicaState::kReady, clock_.Now()});
    }
    actuator_.SetState(std::move(state));
    beating_ = std::move(names);
  }
  // "3 deadline": the last decision.
  std::string Last() const {
    const auto last = book_.Last("billing");
    return last.has_value() ? absl::StrCat(last->replicas(), " ", last->binding()) : "";
  }

  base::FakeClock clock_;
  TestQueues queues_{&clock_};
  sync::testing::MemorySyncStore sync_;
  FakeActuator actuator_;
  Overrides overrides_{&sync_, &clock_};
  DecisionBook book_{&clock_};
  mesh::Roster roster_{&clock_};
  std::optional<int64_t> token_ = 1;
  std::vector<std::string> beating_, working_;
  uint64_t beats_ = 0;
  std::shared_ptr<const RulesInForce> rules_;
  std::unique_ptr<TargetLoop> loop_;
};

TEST_F(TargetLoopTest, StartsTheFirstReplicaForWorkThatWasAnnounced) {
  Settle();
  EXPECT_EQ(Last(), "0 nothing");
  EXPECT_THAT(actuator_.ordered(), IsEmpty());
  loop_->HearWork("in-0", 5);
  loop_->Decide();
  EXPECT_EQ(Last(), "1 deadline");
  EXPECT_EQ(book_.Last("billing")->action().state(), v1::ScalingAction::STATE_ORDERED);
  loop_->Act();
  EXPECT_THAT(actuator_.ordered(), ElementsAre(1));
  const v1::ScalingDecision done = *book_.Last("billing");
  EXPECT_EQ(done.action().state(), v1::ScalingAction::STATE_DONE);
  EXPECT_EQ(done.action().after(), 1);
  EXPECT_THAT(done.explanation(), HasSubstr("Grow from 0 to 1 replica."));
  EXPECT_EQ(actuator_.orders().front().decision, done.id());
  EXPECT_EQ(actuator_.orders().front().fencing_token, 1);
}

TEST_F(TargetLoopTest, WorkWhoseTriggerWasLostIsSeenInTheStatistics) {
  Settle();
  queues_.Put("in-0", 5);
  Second();
  EXPECT_EQ(Last(), "1 deadline");
}

TEST_F(TargetLoopTest, OthersWorkIsNone) {
  Settle();
  loop_->HearWork("other-0", 5);
  loop_->HearWork("in-x", 5);
  Second(2);
  EXPECT_EQ(Last(), "0 nothing");
}

TEST_F(TargetLoopTest, KeepsOneDecisionForAsLongAsItSaysTheSame) {
  Settle();
  Second(20);
  EXPECT_EQ(book_.List("billing", 100).size(), 1u);
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

TEST_F(TargetLoopTest, NobodyGoesBeforeAllCanHaveBeenHeard) {
  HaveReplicas({"a", "b"});
  UseRules("constraints: [{name: none, rank: 1, target: billing, range: [0, 0]}]\n");
  Second(5);
  EXPECT_EQ(Last(), "2 no-metrics") << book_.Last("billing")->explanation();
  EXPECT_THAT(book_.Last("billing")->explanation(), HasSubstr("nobody goes"));
  EXPECT_THAT(actuator_.ordered(), IsEmpty());
  Settle();
  EXPECT_EQ(actuator_.ordered().back(), 0);
}

TEST_F(TargetLoopTest, NobodyGoesWithoutStatistics) {
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

TEST_F(TargetLoopTest, NobodyGoesWhileTheActuatorShowsNothing) {
  HaveReplicas({"a", "b"});
  Second();
  actuator_.FailObserve(absl::UnavailableError("no route"));
  Second(60);
  EXPECT_THAT(actuator_.ordered(), IsEmpty());
  EXPECT_THAT(loop_->Status().trouble(), HasSubstr("no route"));
}

TEST_F(TargetLoopTest, OrdersNothingOfAPlatformThatItHasNeverSeen) {
  actuator_.FailObserve(absl::NotFoundError("no such deployment"));
  queues_.Put("in-0", 5);
  Second(20);
  EXPECT_EQ(Last(), "1 deadline");
  EXPECT_THAT(actuator_.ordered(), IsEmpty());
}

TEST_F(TargetLoopTest, SilentReplicasStayWhereTheyAre) {
  HaveReplicas({"a", "b"});
  working_ = {"a", "b"};
  beating_.clear();
  queues_.Put("in-0", 20);
  Settle();
  working_.clear();  // nothing is heard of them any more
  Second(60);
  for (const int replicas : actuator_.ordered()) EXPECT_GE(replicas, 2);
}

TEST_F(TargetLoopTest, GrowsInOneActionByWhatItHasLearned) {
  HaveReplicas({"a"});
  beating_.clear();
  working_ = {"a"};
  Settle();
  // 20 items a second each: by the minute, 4,000 items need four or so.
  queues_.Put("in-0", 1000);
  for (int i = 0; i < 3; ++i) queues_.Put("in-0", 1000);
  loop_->HearWork("in-0", 4000);
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
  EXPECT_THAT(book_.Last("billing")->explanation(), HasSubstr("By ops."));
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

TEST_F(TargetLoopTest, WaitsForTheOverridesBeforeItDecides) {
  overrides_.Forget();
  queues_.Put("in-0", 5);
  Second(3);
  EXPECT_EQ(Last(), "");
  ASSERT_TRUE(overrides_.Refresh().ok());
  Second();
  EXPECT_EQ(Last(), "1 deadline");
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

TEST_F(TargetLoopTest, WhoDoesNotLeadDecidesNothingAndAsksNobody) {
  token_ = std::nullopt;
  queues_.Put("in-0", 5);
  Second(10);
  EXPECT_EQ(Last(), "");
  EXPECT_THAT(actuator_.ordered(), IsEmpty());
  EXPECT_EQ(loop_->snapshot(), std::nullopt);
}

TEST_F(TargetLoopTest, AnotherTermBeginsWithItsOwnTokenAndLaterIds) {
  Settle();
  const std::string first = book_.Last("billing")->id();
  token_ = std::nullopt;
  Second(3);
  token_ = 5;
  queues_.Put("in-0", 5);
  Second(2);
  EXPECT_EQ(first, "billing-1");
  const auto all = book_.List("billing", 100);
  EXPECT_EQ(all[all.size() - 2].id(), "billing-101") << "the first one of the second term";
  EXPECT_EQ(actuator_.orders().back().fencing_token, 5);
}

TEST_F(TargetLoopTest, WithoutTheStoreThatHasIdsNothingIsDecided) {
  for (int i = 0; i < 100; ++i) sync_.FailNextGet(absl::UnavailableError("down"));
  queues_.Put("in-0", 5);
  Second(3);
  EXPECT_EQ(Last(), "");
}

TEST_F(TargetLoopTest, WhoOnlyObservesOrdersNothing) {
  UseRules("", "observe");
  queues_.Put("in-0", 5);
  Second(3);
  EXPECT_EQ(Last(), "1 deadline");
  EXPECT_EQ(book_.Last("billing")->action().state(), v1::ScalingAction::STATE_NOT_ASKED);
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
  EXPECT_EQ(proto_time::FromProto(status.oldest_deadline()), put + absl::Minutes(1));
  EXPECT_EQ(status.trouble(), "");
  EXPECT_EQ(loop_->snapshot()->observation.queues.front().ready, 3);
}

TEST_F(TargetLoopTest, AnActuatorThatRefusesIsTroubleAndDoesNotStopDecisions) {
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

TEST_F(TargetLoopTest, AWallClockThatIsPutBackDoesNotStopDecisions) {
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

TEST_F(TargetLoopTest, ManyAnnouncementsBetweenTwoDecisionsAreBounded) {
  Settle();
  for (size_t i = 0; i < kMaxPendingAnnouncements + 100; ++i) loop_->HearWork("in-0", 1);
  loop_->HearWork("in-0", 0);
  loop_->HearWork("in-0", -5);
  loop_->Decide();
  EXPECT_EQ(Last(), "1 deadline");
}

}  // namespace
}  // namespace muster::scaling_agent
