// SPDX-License-Identifier: Apache-2.0
#include "services/scaling-agent/decision_log.h"

#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/scaling-agent/limits.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/sync/memory_sync_store.h"

namespace muster::scaling_agent {
namespace {

using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::Optional;

class DecisionLogTest : public ::testing::Test {
 protected:
  static v1::GetDecisionResponse Made(const std::string& target, int number) {
    v1::GetDecisionResponse made;
    made.mutable_decision()->set_id(absl::StrCat(target, "-", number));
    made.mutable_decision()->set_target(target);
    made.mutable_decision()->set_replicas(number);
    return made;
  }
  std::vector<std::string> List(const std::string& target, size_t most = 100) const {
    std::vector<std::string> ids;
    for (const v1::ScalingDecision& decision : decision_log_.List(target, most))
      ids.push_back(decision.id());
    return ids;
  }
  // Returns the id of the follower's next decision, without waiting.
  static std::string Next(DecisionLog::Follower* follower) {
    const auto next = follower->Next(-absl::InfiniteDuration());
    return next.has_value() ? next->id() : "";
  }

  base::FakeClock clock_;
  DecisionLog decision_log_{&clock_};
};

TEST_F(DecisionLogTest, ListsTheNewestFirstOfOneTargetOrAll) {
  decision_log_.Add(Made("a", 1));
  decision_log_.Add(Made("b", 1));
  decision_log_.Add(Made("a", 2));
  EXPECT_THAT(List("a"), ElementsAre("a-2", "a-1"));
  EXPECT_THAT(List(""), ElementsAre("a-2", "b-1", "a-1"));
  EXPECT_THAT(List("", 2), ElementsAre("a-2", "b-1"));
  EXPECT_EQ(decision_log_.Last("b")->id(), "b-1");
  EXPECT_EQ(decision_log_.Last("c"), std::nullopt);
  decision_log_.Forget("a");
  EXPECT_THAT(List(""), ElementsAre("b-1"));
}

TEST_F(DecisionLogTest, FindsOneByItsIdOrTheLast) {
  EXPECT_TRUE(absl::IsNotFound(decision_log_.Find("", "").status()));
  decision_log_.Add(Made("a", 1));
  decision_log_.Add(Made("b", 1));
  EXPECT_EQ(decision_log_.Find("a-1", "")->decision().id(), "a-1");
  EXPECT_EQ(decision_log_.Find("", "a")->decision().id(), "a-1");
  EXPECT_EQ(decision_log_.Find("", "")->decision().id(), "b-1");
  EXPECT_TRUE(absl::IsNotFound(decision_log_.Find("a-2", "").status()));
  EXPECT_TRUE(absl::IsNotFound(decision_log_.Find("", "c").status()));
}

TEST_F(DecisionLogTest, KeepsAThousandOfEachTarget) {
  decision_log_.Add(Made("b", 1));
  for (int i = 0; i < 1001; ++i) decision_log_.Add(Made("a", i));
  EXPECT_EQ(List("a", 5000).size(), 1000u);
  EXPECT_TRUE(absl::IsNotFound(decision_log_.Find("a-0", "").status()));
  EXPECT_TRUE(decision_log_.Find("a-1", "").ok());
  EXPECT_TRUE(decision_log_.Find("b-1", "").ok());
}

TEST_F(DecisionLogTest, TellsFollowersOfDecisionsAndOfWhatBecameOfThem) {
  const auto all = *decision_log_.Follow("");
  const auto one = *decision_log_.Follow("b");
  decision_log_.Add(Made("a", 1));
  decision_log_.Add(Made("b", 1));
  v1::ScalingAction action;
  action.set_state(v1::ScalingAction::STATE_DONE);
  decision_log_.SetAction("b-1", action);
  decision_log_.SetAction("b-99", action);
  action.set_detail("in other words");
  decision_log_.SetAction("b-1", action);
  EXPECT_EQ(Next(all.get()), "a-1");
  EXPECT_EQ(Next(all.get()), "b-1");
  EXPECT_EQ(one->Next(-absl::InfiniteDuration())->action().state(),
            v1::ScalingAction::STATE_UNSPECIFIED);
  EXPECT_EQ(one->Next(-absl::InfiniteDuration())->action().state(), v1::ScalingAction::STATE_DONE);
  EXPECT_EQ(Next(one.get()), "");
  EXPECT_EQ(decision_log_.Last("b")->action().state(), v1::ScalingAction::STATE_DONE);
  EXPECT_EQ(decision_log_.Last("b")->action().detail(), "in other words");
  action.set_after(7);
  decision_log_.SetAction("b-1", action);
  EXPECT_EQ(Next(one.get()), "b-1");
}

TEST_F(DecisionLogTest, ASlowFollowerMissesTheOldest) {
  const auto slow = *decision_log_.Follow("");
  for (int i = 0; i < static_cast<int>(kFollowerBacklog) + 3; ++i) decision_log_.Add(Made("a", i));
  EXPECT_EQ(Next(slow.get()), "a-3");
}

TEST_F(DecisionLogTest, FollowersThatWaitAreSentAwayAtTheEnd) {
  const auto follower = *decision_log_.Follow("");
  std::thread waits([&] { EXPECT_EQ(follower->Next(absl::InfiniteDuration()), std::nullopt); });
  decision_log_.EndFollowers();
  waits.join();
  EXPECT_TRUE(follower->ended());
}

TEST_F(DecisionLogTest, TakesSoManyFollowersAndNoMore) {
  std::vector<std::shared_ptr<DecisionLog::Follower>> followers;
  for (size_t i = 0; i < kMaxFollowers; ++i) followers.push_back(*decision_log_.Follow(""));
  EXPECT_TRUE(absl::IsResourceExhausted(decision_log_.Follow("").status()));
  followers.pop_back();
  EXPECT_TRUE(decision_log_.Follow("").ok());
}

TEST(SaysTheSameTest, OnlyNumbersReasonsAndVerdictsAreNews) {
  v1::ScalingDecision a, b;
  b.set_explanation("other words");
  b.set_wanted(7);
  b.mutable_finish()->set_seconds(1);
  EXPECT_TRUE(SaysTheSame(a, b));
  b.set_binding("max");
  EXPECT_FALSE(SaysTheSame(a, b));
  b = a;
  b.set_feasible(true);
  EXPECT_FALSE(SaysTheSame(a, b));
  b = a;
  b.set_replicas(1);
  EXPECT_FALSE(SaysTheSame(a, b));
}

TEST(DecisionIdsTest, CountUpAlsoAcrossAgentsThatTakeTurns) {
  sync::testing::MemorySyncStore store;
  DecisionIds a("billing", &store), b("billing", &store);
  ASSERT_TRUE(a.Fill().ok());
  EXPECT_EQ(a.Take(), std::nullopt) << "nothing has begun yet";
  a.BeginAnew();
  ASSERT_TRUE(a.Fill().ok());
  EXPECT_THAT(a.Take(), Optional(Eq("billing-1")));
  EXPECT_THAT(a.Take(), Optional(Eq("billing-2")));
  b.BeginAnew();
  ASSERT_TRUE(b.Fill().ok());
  EXPECT_THAT(b.Take(), Optional(Eq("billing-101")));
  a.BeginAnew();
  EXPECT_EQ(a.Take(), std::nullopt);
  ASSERT_TRUE(a.Fill().ok());
  EXPECT_THAT(a.Take(), Optional(Eq("billing-201")));
}

TEST(DecisionIdsTest, WithoutTheStoreThoseAtHandAreUsedUpAndNoneIsMadeUp) {
  sync::testing::MemorySyncStore store;
  DecisionIds ids("billing", &store);
  ids.BeginAnew();
  ASSERT_TRUE(ids.Fill().ok());
  EXPECT_EQ(store.writes_tried(), 1);
  for (size_t i = 0; i < kDecisionIdsAtHand; ++i) EXPECT_TRUE(ids.Take().has_value());
  EXPECT_EQ(ids.Take(), std::nullopt);
  ids.BeginAnew();
  store.FailNextGet(absl::UnavailableError("down"));
  EXPECT_FALSE(ids.Fill().ok());
  EXPECT_EQ(ids.Take(), std::nullopt);
}

}  // namespace
}  // namespace muster::scaling_agent
