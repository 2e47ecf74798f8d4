#include "muster/scaling/actuator/departure_order.h"

#include <algorithm>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::scaling::actuator {
namespace {

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

}  // namespace
}  // namespace muster::scaling::actuator
