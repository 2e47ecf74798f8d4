// SPDX-License-Identifier: Apache-2.0
#include "muster/actuator/process/rolling_update.h"

#include <algorithm>
#include <random>

#include "gtest/gtest.h"
#include "muster/actuator/process/limits.h"

namespace muster::actuator::process {
namespace {

// A target whose replicas become ready when the test says so.
class UpdatedTarget {
 public:
  UpdatedTarget(int wanted, int most, ServingCount serving)
      : wanted_(wanted), most_(most), serving_(serving) {}

  void Want(int wanted) { wanted_ = wanted; }
  void MakeReady(int count) {
    serving_.starting -= count;
    serving_.ready += count;
  }
  void Fail(int count) { serving_.starting -= count; }
  // One look of the actuator. Those that go beyond the outdated ones are not ready, or else
  // outdated.
  void Step(bool can_start = true) {
    const RollingUpdate update(wanted_, most_);
    if (can_start) serving_.starting += update.ToStart(serving_);
    const RollingUpdate::Departures gone = update.ToLetGo(serving_);
    serving_.outdated -= gone.outdated;
    int surplus = gone.surplus;
    for (int* part : {&serving_.starting, &serving_.outdated, &serving_.ready}) {
      const int from = std::min(*part, surplus);
      *part -= from;
      surplus -= from;
    }
  }
  const ServingCount& serving() const { return serving_; }
  int at_work() const { return serving_.outdated + serving_.ready; }
  int wanted() const { return wanted_; }

 private:
  int wanted_;
  const int most_;
  ServingCount serving_;
};

TEST(RollingUpdateTest, LetsAnOutdatedReplicaGoOnlyOnceAnotherOneIsReady) {
  UpdatedTarget target(1, 2, {.outdated = 1});
  target.Step();
  EXPECT_EQ(target.serving().starting, 1);
  EXPECT_EQ(target.serving().outdated, 1);
  target.Step();
  EXPECT_EQ(target.serving().total(), 2) << "the second look starts no other";
  target.MakeReady(1);
  target.Step();
  EXPECT_EQ(target.serving().outdated, 0);
  EXPECT_EQ(target.serving().ready, 1);
}

TEST(RollingUpdateTest, LetsItGoAtOnceWhereTheTargetMayHaveNoMore) {
  UpdatedTarget target(1, 1, {.outdated = 1});
  target.Step();
  EXPECT_EQ(target.serving().outdated, 0);
  EXPECT_EQ(target.serving().starting, 1);
}

TEST(RollingUpdateTest, ReplacesAQuarterAtATime) {
  UpdatedTarget target(8, 20, {.outdated = 8});
  target.Step();
  EXPECT_EQ(target.serving().starting, 2);
  UpdatedTarget full(8, 8, {.outdated = 8});
  full.Step();
  EXPECT_EQ(full.serving().outdated, 6);
  full.Step();
  EXPECT_EQ(full.serving().outdated, 6) << "the first two have to be ready";
}

TEST(RollingUpdateTest, KeepsWhatWorksWhileNoneCanStart) {
  UpdatedTarget roomy(4, 8, {.outdated = 4});
  UpdatedTarget full(4, 4, {.outdated = 4});
  for (UpdatedTarget* target : {&roomy, &full}) {
    target->Step(/*can_start=*/false);
    EXPECT_EQ(target->serving().outdated, 4);
  }
  for (int failure = 0; failure < 5; ++failure) {
    full.Step();
    full.Fail(1);
    full.Step(/*can_start=*/false);
    EXPECT_EQ(full.serving().outdated, 3) << "a program that ends at once costs one step";
  }
}

TEST(RollingUpdateTest, AShrinkMeanwhileTakesOutdatedReplicasFirst) {
  UpdatedTarget target(6, 8, {.outdated = 4, .ready = 2});
  target.Want(3);
  target.Step();
  EXPECT_EQ(target.serving().outdated, 1);
  EXPECT_EQ(target.serving().ready, 2);
  target.Want(0);
  target.Step();
  EXPECT_EQ(target.serving().total(), 0);
}

TEST(RollingUpdateTest, WithoutOutdatedReplicasItCarriesOutTheOrderOnly) {
  const RollingUpdate update(3, 10);
  EXPECT_EQ(update.ToStart({.ready = 1}), 2);
  EXPECT_EQ(update.ToStart({.starting = 1, .ready = 2}), 0);
  EXPECT_EQ(update.ToLetGo({.starting = 1, .ready = 2}).surplus, 0);
  EXPECT_EQ(update.ToLetGo({.starting = 4, .ready = 1}).surplus, 2);
}

TEST(RollingUpdateTest, NeitherStarvesTheWorkNorExceedsTheBound) {
  std::mt19937 random(17);
  const auto up_to = [&random](int most) {
    return std::uniform_int_distribution<int>(0, most)(random);
  };
  for (int round = 0; round < 2000; ++round) {
    const int most = 1 + up_to(30), wanted = 1 + up_to(most - 1);
    const int step = std::max(1, wanted / kReplacedShare);
    UpdatedTarget target(wanted, most, {.outdated = wanted});
    int looks = 0;
    for (; target.serving().outdated > 0 && looks < 1000; ++looks) {
      if (up_to(9) == 0) target.Fail(up_to(target.serving().starting));
      target.MakeReady(up_to(target.serving().starting));
      target.Step();
      ASSERT_LE(target.serving().total(), std::max(wanted, most));
      ASSERT_GE(target.at_work(), wanted < most ? wanted : wanted - step);
    }
    ASSERT_LT(looks, 1000);
    target.MakeReady(target.serving().starting);
    target.Step();
    EXPECT_EQ(target.serving().ready + target.serving().starting, wanted);
  }
}

}  // namespace
}  // namespace muster::actuator::process
