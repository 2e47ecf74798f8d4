#include "muster/scaling/actuator/kubernetes/replica_choice.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/scaling/actuator/kubernetes/limits.h"

namespace muster::scaling::actuator::kubernetes {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

muster::kubernetes::Pod Running(const std::string& name,
                                std::optional<std::string> cost = std::nullopt) {
  muster::kubernetes::Pod pod;
  pod.name = name;
  pod.phase = "Running";
  pod.ready = true;
  pod.deletion_cost = std::move(cost);
  return pod;
}

// "a:-2 b:-" for costs that are set and cleared.
std::string Costs(const std::vector<muster::kubernetes::Pod>& pods,
                  const std::vector<std::string>& wishes, int shrink_by) {
  std::string text;
  for (const CostChange& change : ChooseCosts(pods, wishes, shrink_by)) {
    absl::StrAppend(&text, text.empty() ? "" : " ", change.pod, ":");
    absl::StrAppend(&text, change.cost.has_value() ? absl::StrCat(*change.cost) : "-");
  }
  return text;
}

TEST(ChooseCostsTest, MarksAsManyAsGoInTheOrderOfTheWish) {
  const std::vector<muster::kubernetes::Pod> pods = {Running("a"), Running("b"), Running("c")};
  EXPECT_EQ(Costs(pods, {"c", "a", "b"}, 2), "a:-1 c:-2");
  EXPECT_EQ(Costs(pods, {"c", "a", "b"}, 5), "a:-2 b:-1 c:-3");
  EXPECT_EQ(Costs(pods, {}, 2), "");
  EXPECT_EQ(Costs(pods, {"a"}, 0), "");
  EXPECT_EQ(Costs(pods, {"a"}, -1), "");
}

TEST(ChooseCostsTest, ClearsTheCostsOfAllOthersFirst) {
  const std::vector<muster::kubernetes::Pod> pods = {Running("a"), Running("b", "-1"),
                                                     Running("c", "9"), Running("d", "-1")};
  EXPECT_EQ(Costs(pods, {"a"}, 1), "b:- c:- d:- a:-1");
}

TEST(ChooseCostsTest, ChangesNothingThatIsAsItShouldBe) {
  EXPECT_EQ(Costs({Running("a", "-1"), Running("b")}, {"a"}, 1), "");
}

TEST(ChooseCostsTest, SkipsWishesThatCannotGo) {
  std::vector<muster::kubernetes::Pod> pods = {Running("a"), Running("b"), Running("over", "-1"),
                                               Running("going", "-1")};
  pods[2].phase = "Succeeded";
  pods[3].deleted = true;
  EXPECT_EQ(Costs(pods, {"over", "going", "none", "", "b", "b", "a"}, 1), "b:-1");
  EXPECT_EQ(Costs(pods, {"b", "b", "a"}, 2), "a:-1 b:-2");
}

TEST(ChooseCostsTest, MarksNoMoreThanItsBound) {
  std::vector<muster::kubernetes::Pod> pods;
  std::vector<std::string> wishes;
  for (int i = 0; i < 3 * kMaxMarks; ++i) {
    pods.push_back(Running(absl::StrCat("p-", i)));
    wishes.push_back(pods.back().name);
  }
  EXPECT_THAT(ChooseCosts(pods, wishes, 3 * kMaxMarks), SizeIs(kMaxMarks));
}

TEST(ReplicasOfTest, TellsWhatEachPodIs) {
  std::vector<muster::kubernetes::Pod> pods = {
      Running("ready"), Running("starting"), Running("going"), Running("over"), Running("failed")};
  pods[0].started = absl::FromUnixSeconds(7);
  pods[1].ready = false;
  pods[2].deleted = true;
  pods[3].phase = "Succeeded";
  pods[4].phase = "Failed";
  const std::vector<scaling::actuator::Replica> replicas = ReplicasOf(pods);
  ASSERT_THAT(replicas, SizeIs(3));
  EXPECT_EQ(replicas[0].name, "ready");
  EXPECT_EQ(replicas[0].instance, "ready");
  EXPECT_EQ(replicas[0].started, absl::FromUnixSeconds(7));
  EXPECT_EQ(replicas[0].state, scaling::actuator::ReplicaState::kReady);
  EXPECT_EQ(replicas[1].state, scaling::actuator::ReplicaState::kStarting);
  EXPECT_EQ(replicas[2].state, scaling::actuator::ReplicaState::kDraining);
}

}  // namespace
}  // namespace muster::scaling::actuator::kubernetes
