// SPDX-License-Identifier: Apache-2.0

// Properties of the deadline policy for all observations.
#include "gtest/gtest.h"
#include "rapidcheck.h"
#include "tests/fakes/scaling/policy/scene_generator.h"

namespace muster::scaling::policy {
namespace {

TEST(PolicyPropertyTest, MoreWorkNeverLowersTheAnswer) {
  CheckEvery([] {
    Scene scene = AnyScene();
    TargetFixture less = Play(scene);
    scene.more = *rc::gen::inRange(1, 1'000'000);
    TargetFixture more = Play(scene);
    RC_ASSERT(more.Decide().replicas >= less.Decide().replicas);
  });
}

// The policy groups arrivals by a hundredth of the promise: work that joins earlier work counts as
// up to that much older. Here the promise of the younger work is longer by that much.
TEST(PolicyPropertyTest, OlderWorkNeverLowersTheAnswer) {
  CheckEvery([] {
    Scene scene = AnyScene();
    scene.looks = 0;
    Scene younger = scene;
    younger.sla += scene.sla / 100 + 1;
    if (scene.aim > 0) younger.aim += scene.sla / 100 + 1;
    TargetFixture young = Play(younger);
    for (auto& [ago, items] : scene.work) ago += *rc::gen::inRange(0, 100);
    TargetFixture old = Play(scene);
    RC_ASSERT(old.Decide().replicas >= young.Decide().replicas);
  });
}

TEST(PolicyPropertyTest, ALongerDeadlineNeverRaisesTheAnswer) {
  CheckEvery([] {
    Scene scene = AnyScene();
    scene.looks = 0;  // earlier looks could teach the policies different things
    TargetFixture shorter = Play(scene);
    scene.sla += *rc::gen::inRange(1, 1000);
    TargetFixture longer = Play(scene);
    RC_ASSERT(longer.Decide().replicas <= shorter.Decide().replicas);
  });
}

TEST(PolicyPropertyTest, TheAnswerIsAlwaysWithinItsBounds) {
  CheckEvery([] {
    Scene scene = AnyScene();
    TargetFixture target = Play(scene);
    if (*rc::gen::arbitrary<bool>()) target.LoseStatistics();
    for (int look = 0; look < 5; ++look) {
      const Decision decision = target.Decide();
      RC_ASSERT(decision.replicas >= scene.min);
      RC_ASSERT(decision.replicas <= std::max(scene.min, scene.max));
      RC_ASSERT(decision.tasks >= scene.tasks);
      RC_ASSERT(decision.tasks <= scene.max_tasks);
      target.observation.now += absl::Seconds(1);
    }
  });
}

TEST(PolicyPropertyTest, ChangesNothingOnceItWasCarriedOut) {
  CheckEvery([] {
    Scene scene = AnyScene();
    TargetFixture target = Play(scene);
    // A fleet outside its bounds first moves into them.
    RC_PRE(target.observation.fleet.committed() <= std::max(scene.min, scene.max));
    const Decision first = target.Decide();
    RC_PRE(first.replicas < 20'000);  // a larger fleet takes too long to build
    target.CarryOut(first);
    const Decision second = target.Decide();
    RC_ASSERT(second.replicas == first.replicas);
    RC_ASSERT(second.tasks == first.tasks);
    RC_ASSERT(second.standby == first.standby);
  });
}

TEST(PolicyPropertyTest, SaysTheSameWhenAskedTwice) {
  CheckEvery([] {
    TargetFixture target = Play(AnyScene());
    const Decision first = target.Decide();
    const Decision second = target.Decide();
    RC_ASSERT(second.replicas == first.replicas);
    RC_ASSERT(second.tasks == first.tasks);
  });
}

}  // namespace
}  // namespace muster::scaling::policy
