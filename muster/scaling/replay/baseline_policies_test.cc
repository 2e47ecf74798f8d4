// SPDX-License-Identifier: Apache-2.0

// Each constant of KEDA and of the Horizontal Pod Autoscaler, shown by its effect.
#include "muster/scaling/replay/baseline_policies.h"

#include <memory>
#include <optional>
#include <utility>

#include "gtest/gtest.h"

namespace muster::scaling::replay {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1'000'000);

absl::Time At(int second) { return kStart + absl::Seconds(second); }

HpaSettings Target(double target) {
  HpaSettings settings;
  settings.target = target;
  return settings;
}

HpaSettings WithBehavior(double target) {
  HpaSettings settings = Target(target);
  settings.behavior.emplace();
  return settings;
}

TEST(HpaTest, DoesNothingWhileThereIsNoReplica) { EXPECT_EQ(Hpa(Target(1)).Tick(At(0), 0, 50), 0); }

TEST(HpaTest, DividesTheMetricByTheTargetAndRoundsUp) {
  EXPECT_EQ(Hpa(Target(10)).Tick(At(0), 10, 111), 12);
  EXPECT_EQ(Hpa(Target(10)).Tick(At(0), 10, 120), 12);
  EXPECT_EQ(Hpa(Target(10)).Tick(At(0), 10, 121), 13);
}

TEST(HpaTest, ToleratesATenth) {
  EXPECT_EQ(Hpa(Target(10)).Tick(At(0), 10, 109), 10);
  EXPECT_EQ(Hpa(Target(10)).Tick(At(0), 10, 90), 10);
  EXPECT_EQ(Hpa(Target(10)).Tick(At(0), 10, 111), 12);
  EXPECT_EQ(Hpa(Target(10)).Tick(At(0), 10, 89), 9);
}

TEST(HpaTest, GrowsToTwiceOrToFourWithoutABehavior) {
  EXPECT_EQ(Hpa(Target(1)).Tick(At(0), 1, 1000), 4);
  EXPECT_EQ(Hpa(Target(1)).Tick(At(0), 2, 1000), 4);
  EXPECT_EQ(Hpa(Target(1)).Tick(At(0), 3, 1000), 6);
  EXPECT_EQ(Hpa(Target(1)).Tick(At(0), 40, 1000), 80);
}

TEST(HpaTest, KeepsTheLargestRecommendationOf300Seconds) {
  Hpa hpa(Target(1));
  EXPECT_EQ(hpa.Tick(At(0), 8, 8), 8);
  for (int second = 15; second <= 300; second += 15) EXPECT_EQ(hpa.Tick(At(second), 8, 2), 8);
  EXPECT_EQ(hpa.Tick(At(315), 8, 2), 2);
}

TEST(HpaTest, StaysWithinItsBoundsAndNeverBelowOne) {
  HpaSettings settings = Target(1);
  settings.max = 6;
  EXPECT_EQ(Hpa(settings).Tick(At(0), 5, 1000), 6);
  settings.min = 0;
  EXPECT_EQ(Hpa(settings).Tick(At(0), 5, 0), 1);
  settings.min = 3;
  EXPECT_EQ(Hpa(settings).Tick(At(0), 5, 0), 3);
}

TEST(HpaTest, GrowsByFourOrByHundredPercentWithABehavior) {
  EXPECT_EQ(Hpa(WithBehavior(1)).Tick(At(0), 1, 1000), 5);
  EXPECT_EQ(Hpa(WithBehavior(1)).Tick(At(0), 3, 1000), 7);
  EXPECT_EQ(Hpa(WithBehavior(1)).Tick(At(0), 40, 1000), 80);
}

TEST(HpaTest, DoesNotStabilizeARiseWithABehavior) {
  Hpa hpa(WithBehavior(1));
  EXPECT_EQ(hpa.Tick(At(0), 10, 20), 20);
  // An earlier, larger recommendation does not raise the result: the result falls only after the
  // window.
  EXPECT_EQ(hpa.Tick(At(15), 12, 14), 14);
}

TEST(HpaTest, FallsAtOnceByAllOfThemAfterTheBehaviorsStabilization) {
  Hpa hpa(WithBehavior(1));
  EXPECT_EQ(hpa.Tick(At(0), 50, 50), 50);
  for (int second = 15; second <= 300; second += 15) EXPECT_EQ(hpa.Tick(At(second), 50, 1), 50);
  EXPECT_EQ(hpa.Tick(At(315), 50, 1), 1);
  HpaSettings fast = WithBehavior(1);
  fast.behavior = HpaBehavior{20, 900, absl::Seconds(60)};
  Hpa quick(fast);
  EXPECT_EQ(quick.Tick(At(0), 1, 1000), 21);
  EXPECT_EQ(quick.Tick(At(15), 21, 1000), 210);
  EXPECT_EQ(quick.Tick(At(75), 210, 0), 210);
  EXPECT_EQ(quick.Tick(At(90), 210, 0), 1);
}

// A target that carries out the policy's decisions, with a queue that a test fills.
class KedaTest : public ::testing::Test {
 protected:
  void Use(const KedaSettings& settings,
           std::unique_ptr<scaling::policy::Policy> adviser = nullptr) {
    policy_.emplace(settings, std::move(adviser));
    replicas_ = 0;
    second_ = 0;
  }

  // Lets seconds pass up to and including `second`. Replicas never become ready.
  int Until(int second) {
    for (; second_ <= second; ++second_) {
      scaling::policy::Observation seen;
      seen.now = At(second_);
      seen.bounds.min = min_;
      seen.fleet.starting.assign(static_cast<size_t>(replicas_), At(second_) + absl::Hours(1));
      if (readable_) seen.queues.push_back({"q", seen.now, waiting_, in_flight_, {}, 0, 0});
      replicas_ = policy_->Decide(seen).replicas;
    }
    return replicas_;
  }

  // Returns the seconds from `burst_at` until there are `wanted` replicas.
  int Reaction(int poll_phase, int hpa_phase, int burst_at, int wanted) {
    KedaSettings settings;
    settings.hpa.target = 1;
    settings.poll_phase = absl::Seconds(poll_phase);
    settings.hpa_phase = absl::Seconds(hpa_phase);
    Use(settings);
    waiting_ = 0;
    Until(burst_at - 1);
    waiting_ = wanted;
    while (Until(second_) < wanted) {
    }
    return second_ - 1 - burst_at;
  }

  std::optional<KedaPolicy> policy_;
  int64_t waiting_ = 0;
  int64_t in_flight_ = 0;
  int min_ = 0;
  bool readable_ = true;
  int replicas_ = 0;
  int second_ = 0;
};

KedaSettings HpaLate() {
  KedaSettings settings;
  settings.hpa.target = 1;
  settings.hpa_phase = absl::Hours(10);
  return settings;
}

TEST_F(KedaTest, PollsAtZeroAndEachThirtySeconds) {
  Use(HpaLate());
  waiting_ = 100;
  EXPECT_EQ(Until(0), 1);
  Use(HpaLate());
  waiting_ = 0;
  Until(0);
  waiting_ = 100;
  EXPECT_EQ(Until(29), 0);
  EXPECT_EQ(Until(30), 1);
}

TEST_F(KedaTest, WakesByASingleItemToOneOrToTheMinimum) {
  Use(HpaLate());
  waiting_ = 1;
  EXPECT_EQ(Until(0), 1);
  min_ = 3;
  Use(HpaLate());
  EXPECT_EQ(Until(0), 3);
}

TEST_F(KedaTest, CountsItemsInFlight) {
  Use(HpaLate());
  in_flight_ = 1;
  EXPECT_EQ(Until(0), 1);
}

TEST_F(KedaTest, GoesToZeroFromAnyNumberAfterMoreThan300SecondsWithoutWork) {
  Use(HpaLate());
  waiting_ = 5;
  Until(0);
  waiting_ = 0;
  replicas_ = 40;
  EXPECT_EQ(Until(300), 40);
  EXPECT_EQ(Until(329), 40);
  EXPECT_EQ(Until(330), 0);
}

TEST_F(KedaTest, StaysAtAMinimumAboveZero) {
  min_ = 2;
  Use(HpaLate());
  waiting_ = 5;
  Until(0);
  waiting_ = 0;
  EXPECT_EQ(Until(1000), 2);
}

TEST_F(KedaTest, IsWokenAtOnceByPush) {
  KedaSettings settings = HpaLate();
  settings.push = true;
  Use(settings);
  Until(3);
  waiting_ = 1;
  EXPECT_EQ(Until(4), 1);
}

TEST_F(KedaTest, TicksTheAutoscalerEachFifteenSecondsInAPhaseOfItsOwn) {
  KedaSettings settings;
  settings.hpa.target = 1;
  settings.hpa_phase = absl::Seconds(7);
  Use(settings);
  waiting_ = 1000;
  EXPECT_EQ(Until(6), 1);
  EXPECT_EQ(Until(7), 4);
  EXPECT_EQ(Until(21), 4);
  EXPECT_EQ(Until(22), 8);
}

TEST_F(KedaTest, CountsReplicasThatAreNotReady) {
  // The fixture's replicas never become ready; the fleet still grows from four to eight.
  KedaSettings settings;
  settings.hpa.target = 1;
  Use(settings);
  waiting_ = 1000;
  EXPECT_EQ(Until(45), 4 << 3);
}

TEST_F(KedaTest, KeepsWhatThereIsWhenNothingCanBeRead) {
  Use(HpaLate());
  replicas_ = 9;
  readable_ = false;
  EXPECT_EQ(Until(2000), 9);
}

TEST_F(KedaTest, NeverGoesToZeroWithoutKeda) {
  KedaSettings settings;
  settings.keda = false;
  Use(settings);
  EXPECT_EQ(Until(5000), 1);
}

// Wants what the test says.
class Adviser final : public scaling::policy::Policy {
 public:
  Adviser(const int* wants, int* announcements) : wants_(wants), announcements_(announcements) {}

  void Announce(const scaling::policy::Announcement&) override { ++*announcements_; }
  scaling::policy::Decision Decide(const scaling::policy::Observation&) override {
    scaling::policy::Decision decision;
    decision.replicas = *wants_ - 1;
    decision.standby = 1;
    return decision;
  }

 private:
  const int* const wants_;
  int* const announcements_;
};

TEST_F(KedaTest, HasWhatItsAdviserWantsInsteadOfTheQueuesLength) {
  KedaSettings settings;
  settings.hpa.target = 1;
  settings.push = true;
  settings.cooldown = absl::ZeroDuration();
  settings.hpa.behavior = HpaBehavior{1000, 0, absl::ZeroDuration()};
  settings.hpa_phase = absl::Seconds(7);
  int wants = 1;
  int announcements = 0;
  Use(settings, std::make_unique<Adviser>(&wants, &announcements));
  policy_->Announce({At(0), 5});
  EXPECT_EQ(announcements, 1);
  waiting_ = 100'000;
  EXPECT_EQ(Until(0), 1);
  wants = 30;
  EXPECT_EQ(Until(6), 1);
  EXPECT_EQ(Until(7), 30);
  wants = 28;  // the autoscaler ignores a tenth
  EXPECT_EQ(Until(22), 30);
  wants = 12;
  EXPECT_EQ(Until(37), 12);
  readable_ = false;  // the queue, which this policy does not read
  wants = 20;
  EXPECT_EQ(Until(52), 20);
  wants = 0;
  EXPECT_EQ(Until(53), 0) << "it is pushed, and nothing cools down";
}

struct Delay {
  double mean = 0;
  int worst = 0;
};

TEST_F(KedaTest, ReactsFromZeroAsSlowlyAsItsConstantsSay) {
  for (const auto& [wanted, mean, worst] : {std::tuple{10, 52.5, 75}, {100, 97.5, 120}}) {
    Delay delay;
    constexpr int kPhases = 30 * 15;
    for (int phase = 0; phase < kPhases; ++phase) {
      const int seconds = Reaction(phase % 30, phase / 30, 100, wanted);
      delay.mean += static_cast<double>(seconds) / kPhases;
      delay.worst = std::max(delay.worst, seconds);
    }
    // Whole seconds instead of a continuous phase shift the mean by up to a second.
    EXPECT_NEAR(delay.mean, mean, 1.01) << wanted;
    EXPECT_LE(delay.worst, worst) << wanted;
    EXPECT_GE(delay.worst, worst - 2) << wanted;
  }
}

}  // namespace
}  // namespace muster::scaling::replay
