// SPDX-License-Identifier: Apache-2.0
#include "services/scaling-agent/actuation_worker.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/scaling-agent/limits.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/scaling-agent/agent_fixture.h"

namespace muster::scaling_agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ActuationWorkerTest : public ::testing::Test {
 protected:
  ActuationWorker MakeDesk(actuator::Actuator* actuator) {
    return ActuationWorker(
        "billing", actuator, [this] { return token_; },
        [this](const std::string& decision, const absl::StatusOr<actuator::Outcome>& outcome) {
          answers_.push_back(absl::StrCat(
              decision, " ", outcome.ok() ? outcome->detail : outcome.status().ToString()));
        },
        &clock_);
  }
  static actuator::Order OrderOf(int replicas, const std::string& decision = "billing-1") {
    actuator::Order order;
    order.target = "billing";
    order.decision = decision;
    order.replicas = replicas;
    order.fencing_token = 1;
    return order;
  }

  base::FakeClock clock_;
  std::optional<HeldToken> token_ = HeldToken{1};
  FakeActuator actuator_;
  std::vector<std::string> answers_;
  ActuationWorker actuation_ = MakeDesk(&actuator_);
};

TEST_F(ActuationWorkerTest, GivesAnOrderOnceAndNotAgainWhenItWasObeyed) {
  actuation_.Step();
  EXPECT_TRUE(actuation_.Needs(OrderOf(3)));
  actuation_.Want(OrderOf(3));
  for (int i = 0; i < 5; ++i) {
    actuation_.Step();
    clock_.Advance(kLookPeriod);
  }
  EXPECT_THAT(actuator_.ordered(), ElementsAre(3));
  EXPECT_THAT(answers_, ElementsAre("billing-1 done"));
  EXPECT_FALSE(actuation_.Needs(OrderOf(3)));
  EXPECT_EQ(actuation_.view().state.wanted, 3);
}

TEST_F(ActuationWorkerTest, GivesNoOrderForWhatIsAsItShouldBe) {
  actuator_.SetState({3, {}});
  actuation_.Step();
  actuation_.Want(OrderOf(3));
  actuation_.Step();
  EXPECT_THAT(actuator_.ordered(), IsEmpty());
}

TEST_F(ActuationWorkerTest, GivesItAgainEachSecondWhileThePlatformShowsOtherwise) {
  actuator_.IgnoreOrders();
  actuation_.Step();
  actuation_.Want(OrderOf(3));
  for (int i = 0; i < 20; ++i) {
    actuation_.Step();  // it wakes more often than it orders
    clock_.Advance(kLookPeriod / 4);
  }
  EXPECT_THAT(actuator_.ordered(), ElementsAre(3, 3, 3, 3, 3));
}

TEST_F(ActuationWorkerTest, WhatCannotBeMetIsNotGivenAgainWhileNothingChanges) {
  actuator_.HaveAtMost(3);
  actuation_.Step();
  actuation_.Want(OrderOf(10));
  for (int i = 0; i < 10; ++i) {
    actuation_.Step();
    clock_.Advance(kLookPeriod);
  }
  EXPECT_THAT(actuator_.ordered(), ElementsAre(10));
  actuation_.Want(OrderOf(10, "billing-2"));
  actuation_.Step();
  EXPECT_THAT(actuator_.ordered(), ElementsAre(10, 10)) << "each decision has its answer";
  actuator_.HaveAtMost(5);
  actuator_.SetState({4, {}});
  for (int i = 0; i < 3; ++i) {
    clock_.Advance(kLookPeriod);
    actuation_.Step();
  }
  EXPECT_THAT(actuator_.ordered(), ElementsAre(10, 10, 10)) << "there is one more";
  clock_.Advance(kUnmetOrderPause);
  actuation_.Step();
  EXPECT_THAT(actuator_.ordered(), ElementsAre(10, 10, 10, 10)) << "it may work by now";
}

TEST_F(ActuationWorkerTest, GivesItAgainWhenSomebodyElseHasChangedTheNumber) {
  actuation_.Step();
  actuation_.Want(OrderOf(3));
  actuation_.Step();
  actuator_.SetState({7, {}});
  clock_.Advance(kLookPeriod);
  actuation_.Step();
  clock_.Advance(kLookPeriod);
  actuation_.Step();
  EXPECT_THAT(actuator_.ordered(), ElementsAre(3, 3));
}

TEST_F(ActuationWorkerTest, TriesWhatIsRefusedWithGrowingPatience) {
  actuation_.Step();
  actuator_.FailApply(absl::PermissionDeniedError("lacks verb 'update'"));
  actuation_.Want(OrderOf(3));
  std::vector<int> tried_at;
  for (int second = 0; second < 60; ++second) {
    const size_t before = actuator_.ordered().size();
    actuation_.Step();
    if (actuator_.ordered().size() > before) tried_at.push_back(second);
    clock_.Advance(absl::Seconds(1));
  }
  EXPECT_THAT(tried_at, ElementsAre(0, 1, 3, 7, 15, 30, 45));
  EXPECT_THAT(actuation_.view().trouble.ToString(), HasSubstr("lacks verb 'update'"));
  EXPECT_THAT(answers_.front(), HasSubstr("PERMISSION_DENIED"));

  actuator_.FailApply(absl::OkStatus());
  clock_.Advance(kMaxOrderPause);
  actuation_.Step();
  EXPECT_TRUE(actuation_.view().trouble.ok());
  EXPECT_EQ(answers_.back(), "billing-1 done");
}

TEST_F(ActuationWorkerTest, EachRefusalIsTold) {
  actuation_.Step();
  for (const absl::Status& refusal :
       {absl::NotFoundError("no such target"), absl::UnavailableError("no answer"),
        absl::FailedPreconditionError("stale"), absl::ResourceExhaustedError("slower")}) {
    actuation_.Rest();
    actuator_.FailApply(refusal);
    actuation_.Want(OrderOf(3, absl::StrCat("billing-", refusal.message())));
    actuation_.Step();
    EXPECT_EQ(actuation_.view().trouble.code(), refusal.code());
    EXPECT_THAT(answers_.back(), HasSubstr(refusal.ToString()));
  }
}

TEST_F(ActuationWorkerTest, AnOrderOfAnEarlierTermIsNotGiven) {
  actuation_.Step();
  actuation_.Want(OrderOf(3));
  token_ = HeldToken{2};
  actuation_.Step();
  token_ = std::nullopt;
  clock_.Advance(absl::Minutes(1));
  actuation_.Step();
  EXPECT_THAT(actuator_.ordered(), IsEmpty());
  EXPECT_THAT(answers_.front(), HasSubstr("does not lead any more"));
}

TEST_F(ActuationWorkerTest, AnOrderSaysUntilWhenItsGiverLeads) {
  actuator_.IgnoreOrders();
  actuation_.Step();
  actuation_.Want(OrderOf(3));
  std::vector<absl::Duration> until;
  for (int i = 0; i < 3; ++i) {
    until.push_back(clock_.Monotonic() + absl::Seconds(2));
    token_->until = until.back();
    actuation_.Step();
    clock_.Advance(kLookPeriod);
  }
  ASSERT_EQ(actuator_.orders().size(), 3u);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(actuator_.orders()[i].not_after, until[i]);
}

TEST_F(ActuationWorkerTest, AnOrderThatWasOvertakenIsToldSo) {
  actuation_.Step();
  actuation_.Want(OrderOf(3));
  actuation_.Want(OrderOf(4, "billing-2"));
  EXPECT_THAT(answers_.front(), HasSubstr("another decision came"));
  actuation_.Step();
  EXPECT_THAT(actuator_.ordered(), ElementsAre(4));
}

TEST_F(ActuationWorkerTest, ALookThatIsTooOldIsToldSo) {
  EXPECT_FALSE(actuation_.view().was_seen);
  actuator_.FailObserve(absl::UnavailableError("no route"));
  actuation_.Step();
  EXPECT_FALSE(actuation_.view().was_seen);
  EXPECT_THAT(actuation_.view().trouble.ToString(), HasSubstr("no route"));
  actuator_.FailObserve(absl::OkStatus());
  actuation_.Step();
  EXPECT_TRUE(actuation_.view().is_fresh);
  clock_.Advance(kTargetStateLifetime + absl::Seconds(1));
  EXPECT_FALSE(actuation_.view().is_fresh);
  EXPECT_THAT(actuation_.view().trouble.ToString(), HasSubstr("does not answer"));
}

// The actuators knew why a replica did not come, and kept it to themselves.
TEST_F(ActuationWorkerTest, WhyReplicasDoNotComeIsTold) {
  actuator_.SetState({.wanted = 2, .replicas = {}, .trouble = "pod a cannot start: Unschedulable"});
  actuation_.Step();
  EXPECT_THAT(actuation_.view().trouble.ToString(), HasSubstr("pod a cannot start"));
  actuator_.SetState({.wanted = 2, .replicas = {}});
  actuation_.Step();
  EXPECT_TRUE(actuation_.view().trouble.ok());
}

TEST_F(ActuationWorkerTest, ADryRunIsToldOfEachChangeOnly) {
  FakeActuator dry("dry-run");
  dry.IgnoreOrders();
  ActuationWorker worker = MakeDesk(&dry);
  worker.Step();
  for (const int replicas : {3, 3, 4, 4, 3}) {
    worker.Want(OrderOf(replicas, absl::StrCat("billing-", replicas)));
    worker.Step();
    clock_.Advance(kLookPeriod);
    worker.Step();
  }
  EXPECT_THAT(dry.ordered(), ElementsAre(3, 4, 3));
}

TEST_F(ActuationWorkerTest, OrdersTasksOnlyWhereTheyChange) {
  actuator_.SetState({3, {}});
  actuation_.Step();
  actuator::Order order = OrderOf(3);
  order.tasks = 4;
  actuation_.Want(order);
  actuation_.Step();
  clock_.Advance(kLookPeriod);
  actuation_.Step();
  ASSERT_EQ(actuator_.orders().size(), 1u);
  EXPECT_EQ(actuator_.orders().front().tasks, 4);
}

}  // namespace
}  // namespace muster::scaling_agent
