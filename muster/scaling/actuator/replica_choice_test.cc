#include "muster/scaling/actuator/replica_choice.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::scaling::actuator {
namespace {

using Replica;
using ReplicaState;
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
}  // namespace muster::scaling::actuator
