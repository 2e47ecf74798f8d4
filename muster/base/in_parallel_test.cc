// SPDX-License-Identifier: Apache-2.0
#include "muster/base/in_parallel.h"

#include <atomic>
#include <vector>

#include "gtest/gtest.h"
#include "muster/base/mutex.h"

namespace muster::base {
namespace {

TEST(InParallelTest, CallsOnceForEach) {
  for (const size_t count : {0, 1, 3, 1000}) {
    std::vector<std::atomic<int>> calls(count);
    InParallel(count, 8, [&](size_t i) { ++calls[i]; });
    for (const std::atomic<int>& of_one : calls) EXPECT_EQ(of_one, 1);
  }
}

// Each call waits for the others: it hangs with fewer threads.
TEST(InParallelTest, HasAsManyCallsAtATimeAsThreads) {
  Mutex mu;
  CondVar changed;
  int running = 0;
  InParallel(4, 4, [&](size_t) {
    MutexLock lock(&mu);
    ++running;
    changed.NotifyAll();
    while (running < 4) changed.Wait(&mu);
  });
  EXPECT_EQ(running, 4);
}

TEST(InParallelTest, HasNoMoreCallsAtATimeThanThreads) {
  std::atomic<int> running = 0, most = 0;
  InParallel(100, 2, [&](size_t) {
    const int now = ++running;
    for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
    }
    --running;
  });
  EXPECT_LE(most, 2);
}

}  // namespace
}  // namespace muster::base
