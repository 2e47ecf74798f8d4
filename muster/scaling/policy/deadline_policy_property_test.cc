// What holds of the deadline policy whatever it sees.
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

// Arrivals are told apart to a hundredth of the promise: work that joins earlier work counts as so
// much older. That much longer the promise of the younger work is here.
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
    scene.looks = 0;  // what was learned and added on the way may differ
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
    // Beyond its bounds a fleet becomes another one first.
    RC_PRE(target.observation.fleet.committed() <= std::max(scene.min, scene.max));
    const Decision first = target.Decide();
    RC_PRE(first.replicas < 20'000);  // a fleet of that size takes long to make
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
