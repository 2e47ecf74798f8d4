// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/actuator/actuator_conformance.h"

#include <algorithm>
#include <limits>
#include <set>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"

namespace muster::actuator::conformance {

using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::Field;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAreArray;

Platform::Platform(Traits platform_traits, StageMaker maker)
    : traits(platform_traits), make_stage(std::move(maker)) {}

void ActuatorConformance::SetUp() {
  stage_ = GetParam().make_stage();
  if (stage_ == nullptr) GTEST_SKIP() << "its platform is not here";
  target_ = stage_->target();
}

Order ActuatorConformance::To(int replicas, int64_t token) const {
  Order order;
  order.target = target_;
  order.decision = absl::StrCat("to-", replicas);
  order.replicas = replicas;
  order.fencing_token = token;
  return order;
}

Outcome ActuatorConformance::Apply(const Order& order) {
  const absl::StatusOr<Outcome> outcome = actuator().Apply(order);
  EXPECT_TRUE(outcome.ok()) << outcome.status();
  return outcome.value_or(Outcome{-1, -1, ""});
}

std::vector<std::string> ActuatorConformance::Names() {
  const absl::StatusOr<TargetState> state = actuator().Observe(target_);
  EXPECT_TRUE(state.ok()) << state.status();
  std::vector<std::string> names;
  if (!state.ok()) return names;
  for (const Replica& replica : state->replicas) {
    const bool gone =
        replica.state == ReplicaState::kDraining || replica.state == ReplicaState::kParked;
    if (!gone) names.push_back(replica.name);
  }
  return names;
}

TEST_P(ActuatorConformance, SaysWhatKindItIs) {
  const std::string kind(actuator().kind());
  EXPECT_THAT(kind, AnyOf("process", "kubernetes", "threads", "dry-run"));
}

TEST_P(ActuatorConformance, ObservesATargetThatHasNothingYet) {
  const absl::StatusOr<TargetState> state = actuator().Observe(target_);
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_EQ(state->wanted, 0);
  if (traits().makes) {
    EXPECT_THAT(state->replicas, IsEmpty());
  } else {
    EXPECT_THAT(state->replicas, Each(Field(&Replica::state, ReplicaState::kParked)));
  }
}

TEST_P(ActuatorConformance, SaysNotFoundOfATargetThatIsNone) {
  for (const char* name : {"no-such-target", "", "../escape", "a b", "\xff\xfe"}) {
    EXPECT_EQ(actuator().Observe(name).status().code(), absl::StatusCode::kNotFound) << name;
    Order order = To(1);
    order.target = name;
    EXPECT_EQ(Refusal(order), absl::StatusCode::kNotFound) << name;
  }
  EXPECT_EQ(stage_->Told(target_), 0);
}

TEST_P(ActuatorConformance, TellsWhatWasAndWhatIsToldNow) {
  const Outcome outcome = Apply(To(3));
  EXPECT_EQ(outcome.before, 0);
  EXPECT_EQ(outcome.after, 3);
  EXPECT_THAT(outcome.detail, Not(IsEmpty()));
  EXPECT_EQ(stage_->Told(target_), Expected(3));
  EXPECT_EQ(actuator().Observe(target_)->wanted, Expected(3));
}

TEST_P(ActuatorConformance, GivingAnOrderTwiceDoesNoHarm) {
  Apply(To(2));
  const Outcome again = Apply(To(2));
  EXPECT_EQ(again.before, Expected(2));
  EXPECT_EQ(again.after, 2);
  EXPECT_EQ(stage_->Told(target_), Expected(2));
}

TEST_P(ActuatorConformance, LeavesOtherTargetsAlone) {
  Apply(To(2));
  Order other = To(1);
  other.target = stage_->other_target();
  Apply(other);
  EXPECT_EQ(stage_->Told(target_), Expected(2));
  EXPECT_EQ(stage_->Told(stage_->other_target()), Expected(1));
}

TEST_P(ActuatorConformance, RefusesAStaleTokenAndChangesNothing) {
  Apply(To(1, 7));
  EXPECT_EQ(Refusal(To(3, 6)), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Refusal(To(0, 6)), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(stage_->Told(target_), Expected(1));
  Apply(To(2, 7));
  Apply(To(3, 8));
  EXPECT_EQ(Refusal(To(1, 7)), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(stage_->Told(target_), Expected(3));
}

TEST_P(ActuatorConformance, RefusesAStaleTokenForWhicheverTarget) {
  Apply(To(1, 7));
  Order other = To(1, 6);
  other.target = stage_->other_target();
  EXPECT_EQ(Refusal(other), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(stage_->Told(stage_->other_target()), 0);
}

TEST_P(ActuatorConformance, AnOrderWhoseMomentHasPassedChangesNothing) {
  Apply(To(1));
  for (const int replicas : {0, 1, 3}) {
    Order late = To(replicas, 9);
    late.not_after = -absl::InfiniteDuration();
    EXPECT_EQ(Refusal(late), absl::StatusCode::kAborted) << replicas;
  }
  EXPECT_EQ(stage_->Told(target_), Expected(1));
  Apply(To(2));
  EXPECT_EQ(stage_->Told(target_), Expected(2));
}

TEST_P(ActuatorConformance, RefusesFewerThanNone) {
  Apply(To(1));
  for (const int replicas : {-1, std::numeric_limits<int>::min()}) {
    EXPECT_EQ(Refusal(To(replicas)), absl::StatusCode::kInvalidArgument);
  }
  Order order = To(2);
  order.tasks = -1;
  EXPECT_EQ(Refusal(order), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(stage_->Told(target_), Expected(1));
}

TEST_P(ActuatorConformance, GrowsShrinksAndGoesToNone) {
  if (!traits().has_replicas) GTEST_SKIP() << "its orders make no replicas";
  for (const int replicas : {2, 3, 1, 0, 1}) {
    Apply(To(replicas));
    EXPECT_TRUE(stage_->Await(target_, replicas)) << replicas;
  }
}

TEST_P(ActuatorConformance, NamesEachReplicaOnce) {
  if (!traits().has_replicas) GTEST_SKIP() << "its orders make no replicas";
  Apply(To(3));
  ASSERT_TRUE(stage_->Await(target_, 3));
  const std::vector<std::string> names = Names();
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), 3u);
  EXPECT_THAT(names, Each(Not(IsEmpty())));
  const absl::StatusOr<TargetState> state = actuator().Observe(target_);
  ASSERT_TRUE(state.ok()) << state.status();
  for (const Replica& replica : state->replicas) {
    EXPECT_GT(replica.started, absl::FromUnixSeconds(1'600'000'000)) << replica.name;
  }
}

TEST_P(ActuatorConformance, LetsGoFirstWhoIsNamed) {
  if (!traits().has_replicas) GTEST_SKIP() << "its orders make no replicas";
  Apply(To(4));
  ASSERT_TRUE(stage_->Await(target_, 4));
  std::vector<std::string> names = Names();
  std::sort(names.begin(), names.end());
  Order order = To(2);
  order.let_go_first = {names[1], "no-such-replica", names[0], names[2]};
  const Outcome outcome = Apply(order);
  ASSERT_TRUE(stage_->Await(target_, 2));
  if (traits().chooses) {
    EXPECT_THAT(Names(), UnorderedElementsAreArray({names[2], names[3]}));
  } else {
    EXPECT_THAT(outcome.detail, ::testing::HasSubstr("not those that were chosen"));
  }
}

// Order::let_go_first applies to its own order only.
TEST_P(ActuatorConformance, ForgetsWhoWasNamedBefore) {
  if (!traits().has_replicas || !traits().chooses) GTEST_SKIP() << "it chooses no replicas";
  Apply(To(3));
  ASSERT_TRUE(stage_->Await(target_, 3));
  const std::vector<std::string> names = Names();
  Order two = To(2);
  two.let_go_first = {names[0], names[1], names[2]};
  Apply(two);
  ASSERT_TRUE(stage_->Await(target_, 2));
  Order one = To(1);
  one.let_go_first = {names[2]};
  Apply(one);
  ASSERT_TRUE(stage_->Await(target_, 1));
  EXPECT_THAT(Names(), UnorderedElementsAreArray({names[1]}));
}

TEST_P(ActuatorConformance, NamesThatAreNoneDoNoHarm) {
  Apply(To(2));
  Order order = To(1);
  order.let_go_first = {"", "../escape", "no-such-replica", std::string(10'000, 'x'), "\xff"};
  EXPECT_EQ(Apply(order).after, 1);
  EXPECT_EQ(stage_->Told(target_), Expected(1));
}

TEST_P(ActuatorConformance, ServesManyThreads) {
  std::vector<std::thread> threads;
  for (int t = 1; t <= 4; ++t) {
    threads.emplace_back([this, t] {
      for (int i = 0; i < 5; ++i) {
        const absl::Status status = actuator().Apply(To(t)).status();
        // Concurrent first orders may get in each other's way; no other error is allowed.
        EXPECT_THAT(status.code(), AnyOf(absl::StatusCode::kOk, absl::StatusCode::kUnavailable))
            << status;
        EXPECT_TRUE(actuator().Observe(target_).ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Apply(To(2)).after, 2);
  EXPECT_EQ(stage_->Told(target_), Expected(2));
}

}  // namespace muster::actuator::conformance
