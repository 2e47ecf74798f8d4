// SPDX-License-Identifier: Apache-2.0
#include "muster/actuator/orders.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/base/fake_clock.h"

namespace muster::actuator {

namespace {

using ::testing::HasSubstr;

Order WithToken(int64_t token) {
  Order order;
  order.target = "billing";
  order.decision = "d-7";
  order.replicas = 1;
  order.fencing_token = token;
  return order;
}

class OrderGateTest : public ::testing::Test {
 protected:
  base::FakeClock clock_;
  OrderGate gate_{&clock_};
};

TEST_F(OrderGateTest, LetsEqualAndHigherTokensIn) {
  for (const int64_t token :
       {int64_t{0}, int64_t{3}, int64_t{3}, int64_t{4}, std::numeric_limits<int64_t>::max()}) {
    EXPECT_TRUE(gate_.Admit(WithToken(token)).ok()) << token;
  }
}

TEST_F(OrderGateTest, RefusesALowerTokenAndNamesBoth) {
  ASSERT_TRUE(gate_.Admit(WithToken(5)).ok());
  const absl::Status status = gate_.Admit(WithToken(4));
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("'d-7' for target 'billing'"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("token 4 is lower than 5"));
  EXPECT_TRUE(gate_.Admit(WithToken(5)).ok());
}

TEST_F(OrderGateTest, RefusesFewerThanNoneWithoutHeedingTheToken) {
  Order order = WithToken(9);
  order.replicas = -1;
  EXPECT_EQ(gate_.Admit(order).code(), absl::StatusCode::kInvalidArgument);
  order = WithToken(9);
  order.tasks = -1;
  EXPECT_EQ(gate_.Admit(order).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(gate_.Admit(WithToken(1)).ok());
}

TEST_F(OrderGateTest, RefusesFromItsMomentOnWithoutHeedingTheToken) {
  Order order = WithToken(9);
  order.not_after = clock_.Monotonic() + absl::Seconds(2);
  clock_.Advance(absl::Seconds(2));
  const absl::Status status = gate_.Admit(order);
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("'d-7' for target 'billing' comes too late"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("the lead may have run out"));
  EXPECT_TRUE(gate_.Admit(WithToken(1)).ok());
  order.not_after += absl::Nanoseconds(1);
  EXPECT_TRUE(gate_.Admit(order).ok());
}

using ::testing::ElementsAre;

const absl::Time kStart = absl::FromUnixSeconds(1'700'000'000);

std::vector<std::string> InOrder(std::vector<Replica> replicas,
                                 const std::vector<std::string>& let_go_first) {
  const ScaleDownOrder order(let_go_first);
  const auto rank = [&order](const Replica& one) {
    return order.RankOf(one.name, one.state, one.started);
  };
  std::sort(replicas.begin(), replicas.end(),
            [&rank](const Replica& a, const Replica& b) { return rank(a) < rank(b); });
  std::vector<std::string> names;
  for (const Replica& replica : replicas) names.push_back(replica.name);
  return names;
}

Replica Named(const std::string& name, ReplicaState state, absl::Time started = kStart) {
  return {name, name, state, started};
}

TEST(ScaleDownOrderTest, TheNamedGoAsTheyAreNamedAndBeforeAllOthers) {
  EXPECT_THAT(InOrder({Named("a", ReplicaState::kStarting), Named("b", ReplicaState::kReady),
                       Named("c", ReplicaState::kReady)},
                      {"c", "gone", "b", "c"}),
              ElementsAre("c", "b", "a"));
}

TEST(ScaleDownOrderTest, ThenThoseThatAreNotReadyAndTheNewest) {
  EXPECT_THAT(InOrder({Named("old", ReplicaState::kReady),
                       Named("new", ReplicaState::kReady, kStart + absl::Seconds(9)),
                       Named("silent", ReplicaState::kStarting)},
                      {}),
              ElementsAre("silent", "new", "old"));
}

// An actuator may not know when a replica was started.
TEST(ScaleDownOrderTest, TimesWithoutEndAreInOrderToo) {
  EXPECT_THAT(InOrder({Named("ever", ReplicaState::kReady, absl::InfinitePast()),
                       Named("b", ReplicaState::kReady), Named("a", ReplicaState::kReady),
                       Named("never", ReplicaState::kReady, absl::InfiniteFuture())},
                      {}),
              ElementsAre("never", "a", "b", "ever"));
}

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const std::vector<Replica> kReplicas = {
    {"old", "old", ReplicaState::kReady, absl::FromUnixSeconds(1)},
    {"new", "new", ReplicaState::kReady, absl::FromUnixSeconds(4)},
    {"early", "early", ReplicaState::kStarting, absl::FromUnixSeconds(2)},
    {"late", "late", ReplicaState::kStarting, absl::FromUnixSeconds(3)},
};

TEST(ReplicaChoiceTest, TakesThoseThatAreNotReadyThenTheNewest) {
  EXPECT_THAT(ChooseForScaleDown(kReplicas, {}, 4), ElementsAre("late", "early", "new", "old"));
  EXPECT_THAT(ChooseForScaleDown(kReplicas, {}, 1), ElementsAre("late"));
}

TEST(ReplicaChoiceTest, TakesTheNamedBeforeAllOthersInTheirOrder) {
  EXPECT_THAT(ChooseForScaleDown(kReplicas, {"old", "nobody", "early", "old"}, 3),
              ElementsAre("old", "early", "late"));
}

TEST(ReplicaChoiceTest, TakesNoMoreThanThereAre) {
  EXPECT_THAT(ChooseForScaleDown(kReplicas, {}, 9), SizeIs(4));
  EXPECT_THAT(ChooseForScaleDown(kReplicas, {"old"}, 0), IsEmpty());
  EXPECT_THAT(ChooseForScaleDown(kReplicas, {"old"}, -1), IsEmpty());
}

}  // namespace

}  // namespace muster::actuator
