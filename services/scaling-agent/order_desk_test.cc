#include "services/scaling-agent/order_desk.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/fake_clock.h"
#include "services/scaling-agent/agent_fixture.h"
#include "services/scaling-agent/limits.h"

namespace muster::scaling_agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class OrderDeskTest : public ::testing::Test {
 protected:
  OrderDesk MakeDesk(actuator::Actuator* actuator) {
    return OrderDesk(
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
  OrderDesk desk_ = MakeDesk(&actuator_);
};

TEST_F(OrderDeskTest, GivesAnOrderOnceAndNotAgainWhenItWasObeyed) {
  desk_.Step();
  EXPECT_TRUE(desk_.Needs(OrderOf(3)));
  desk_.Want(OrderOf(3));
  for (int i = 0; i < 5; ++i) {
    desk_.Step();
    clock_.Advance(kLookPeriod);
  }
  EXPECT_THAT(actuator_.ordered(), ElementsAre(3));
  EXPECT_THAT(answers_, ElementsAre("billing-1 done"));
  EXPECT_FALSE(desk_.Needs(OrderOf(3)));
  EXPECT_EQ(desk_.sight().state.wanted, 3);
}

TEST_F(OrderDeskTest, GivesNoOrderForWhatIsAsItShouldBe) {
  actuator_.SetState({3, {}});
  desk_.Step();
  desk_.Want(OrderOf(3));
  desk_.Step();
  EXPECT_THAT(actuator_.ordered(), IsEmpty());
}

TEST_F(OrderDeskTest, GivesItAgainEachSecondWhileThePlatformShowsOtherwise) {
  actuator_.IgnoreOrders();
  desk_.Step();
  desk_.Want(OrderOf(3));
  for (int i = 0; i < 20; ++i) {
    desk_.Step();  // woken more often than it orders
    clock_.Advance(kLookPeriod / 4);
  }
  EXPECT_THAT(actuator_.ordered(), ElementsAre(3, 3, 3, 3, 3));
}

TEST_F(OrderDeskTest, WhatCannotBeMetIsNotGivenAgainWhileNothingChanges) {
  actuator_.HaveAtMost(3);
  desk_.Step();
  desk_.Want(OrderOf(10));
  for (int i = 0; i < 10; ++i) {
    desk_.Step();
    clock_.Advance(kLookPeriod);
  }
  EXPECT_THAT(actuator_.ordered(), ElementsAre(10));
  desk_.Want(OrderOf(10, "billing-2"));
  desk_.Step();
  EXPECT_THAT(actuator_.ordered(), ElementsAre(10, 10)) << "each decision has its answer";
  actuator_.HaveAtMost(5);
  actuator_.SetState({4, {}});
  for (int i = 0; i < 3; ++i) {
    clock_.Advance(kLookPeriod);
    desk_.Step();
  }
  EXPECT_THAT(actuator_.ordered(), ElementsAre(10, 10, 10)) << "there is one more";
  clock_.Advance(kUnmetOrderPause);
  desk_.Step();
  EXPECT_THAT(actuator_.ordered(), ElementsAre(10, 10, 10, 10)) << "it may work by now";
}

TEST_F(OrderDeskTest, GivesItAgainWhenSomebodyElseHasChangedTheNumber) {
  desk_.Step();
  desk_.Want(OrderOf(3));
  desk_.Step();
  actuator_.SetState({7, {}});
  clock_.Advance(kLookPeriod);
  desk_.Step();
  clock_.Advance(kLookPeriod);
  desk_.Step();
  EXPECT_THAT(actuator_.ordered(), ElementsAre(3, 3));
}

TEST_F(OrderDeskTest, TriesWhatIsRefusedWithGrowingPatience) {
  desk_.Step();
  actuator_.FailApply(absl::PermissionDeniedError("lacks verb 'update'"));
  desk_.Want(OrderOf(3));
  std::vector<int> tried_at;
  for (int second = 0; second < 60; ++second) {
    const size_t before = actuator_.ordered().size();
    desk_.Step();
    if (actuator_.ordered().size() > before) tried_at.push_back(second);
    clock_.Advance(absl::Seconds(1));
  }
  EXPECT_THAT(tried_at, ElementsAre(0, 1, 3, 7, 15, 30, 45));
  EXPECT_THAT(desk_.sight().trouble.ToString(), HasSubstr("lacks verb 'update'"));
  EXPECT_THAT(answers_.front(), HasSubstr("PERMISSION_DENIED"));

  actuator_.FailApply(absl::OkStatus());
  clock_.Advance(kMaxOrderPause);
  desk_.Step();
  EXPECT_TRUE(desk_.sight().trouble.ok());
  EXPECT_EQ(answers_.back(), "billing-1 done");
}

TEST_F(OrderDeskTest, EachRefusalIsTold) {
  desk_.Step();
  for (const absl::Status& refusal :
       {absl::NotFoundError("no such target"), absl::UnavailableError("no answer"),
        absl::FailedPreconditionError("stale"), absl::ResourceExhaustedError("slower")}) {
    desk_.Rest();
    actuator_.FailApply(refusal);
    desk_.Want(OrderOf(3, absl::StrCat("billing-", refusal.message())));
    desk_.Step();
    EXPECT_EQ(desk_.sight().trouble.code(), refusal.code());
    EXPECT_THAT(answers_.back(), HasSubstr(refusal.ToString()));
  }
}

TEST_F(OrderDeskTest, AnOrderOfAnEarlierTermIsNotGiven) {
  desk_.Step();
  desk_.Want(OrderOf(3));
  token_ = HeldToken{2};
  desk_.Step();
  token_ = std::nullopt;
  clock_.Advance(absl::Minutes(1));
  desk_.Step();
  EXPECT_THAT(actuator_.ordered(), IsEmpty());
  EXPECT_THAT(answers_.front(), HasSubstr("does not lead any more"));
}

TEST_F(OrderDeskTest, AnOrderSaysUntilWhenItsGiverLeads) {
  actuator_.IgnoreOrders();
  desk_.Step();
  desk_.Want(OrderOf(3));
  std::vector<absl::Duration> until;
  for (int i = 0; i < 3; ++i) {
    until.push_back(clock_.Monotonic() + absl::Seconds(2));
    token_->until = until.back();
    desk_.Step();
    clock_.Advance(kLookPeriod);
  }
  ASSERT_EQ(actuator_.orders().size(), 3u);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(actuator_.orders()[i].not_after, until[i]);
}

TEST_F(OrderDeskTest, AnOrderThatWasOvertakenIsToldSo) {
  desk_.Step();
  desk_.Want(OrderOf(3));
  desk_.Want(OrderOf(4, "billing-2"));
  EXPECT_THAT(answers_.front(), HasSubstr("another decision came"));
  desk_.Step();
  EXPECT_THAT(actuator_.ordered(), ElementsAre(4));
}

TEST_F(OrderDeskTest, ALookThatIsTooOldIsToldSo) {
  EXPECT_FALSE(desk_.sight().was_seen);
  actuator_.FailObserve(absl::UnavailableError("no route"));
  desk_.Step();
  EXPECT_FALSE(desk_.sight().was_seen);
  EXPECT_THAT(desk_.sight().trouble.ToString(), HasSubstr("no route"));
  actuator_.FailObserve(absl::OkStatus());
  desk_.Step();
  EXPECT_TRUE(desk_.sight().is_fresh);
  clock_.Advance(kTargetStateLifetime + absl::Seconds(1));
  EXPECT_FALSE(desk_.sight().is_fresh);
  EXPECT_THAT(desk_.sight().trouble.ToString(), HasSubstr("does not answer"));
}

TEST_F(OrderDeskTest, ADryRunIsToldOfEachChangeOnly) {
  FakeActuator dry("dry-run");
  dry.IgnoreOrders();
  OrderDesk desk = MakeDesk(&dry);
  desk.Step();
  for (const int replicas : {3, 3, 4, 4, 3}) {
    desk.Want(OrderOf(replicas, absl::StrCat("billing-", replicas)));
    desk.Step();
    clock_.Advance(kLookPeriod);
    desk.Step();
  }
  EXPECT_THAT(dry.ordered(), ElementsAre(3, 4, 3));
}

TEST_F(OrderDeskTest, OrdersTasksOnlyWhereTheyChange) {
  actuator_.SetState({3, {}});
  desk_.Step();
  actuator::Order order = OrderOf(3);
  order.tasks = 4;
  desk_.Want(order);
  desk_.Step();
  clock_.Advance(kLookPeriod);
  desk_.Step();
  ASSERT_EQ(actuator_.orders().size(), 1u);
  EXPECT_EQ(actuator_.orders().front().tasks, 4);
}

}  // namespace
}  // namespace muster::scaling_agent
