// SPDX-License-Identifier: Apache-2.0
#include "muster/base/worker_pool.h"

#include <atomic>
#include <latch>
#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::base {
namespace {

using ::testing::ElementsAre;

TEST(WorkerPoolTest, RunsItsTasksInTheOrderInWhichTheyCame) {
  std::vector<int> ran;
  {
    WorkerPool pool(1);
    for (int i = 0; i < 3; ++i) pool.Add([&ran, i] { ran.push_back(i); });
  }
  EXPECT_THAT(ran, ElementsAre(0, 1, 2));
}

TEST(WorkerPoolTest, RunsAsManyTasksAtATimeAsItHasThreads) {
  std::latch both(2);
  WorkerPool pool(2);
  for (int i = 0; i < 2; ++i) pool.Add([&both] { both.arrive_and_wait(); });
  both.wait();
}

TEST(WorkerPoolTest, FinishesWhatWaitsBeforeItIsGone) {
  std::atomic<int> ran = 0;
  std::latch begun(1), go(1);
  {
    auto pool = std::make_unique<WorkerPool>(1);
    pool->Add([&] {
      begun.count_down();
      go.wait();
    });
    begun.wait();
    for (int i = 0; i < 10; ++i) pool->Add([&ran] { ++ran; });
    go.count_down();
  }
  EXPECT_EQ(ran, 10);
}

}  // namespace
}  // namespace muster::base
