// SPDX-License-Identifier: Apache-2.0
#include "muster/base/mutex.h"

#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace muster::base {
namespace {

TEST(KeyedMutexTest, LetsOneAtATimeHoldAKey) {
  KeyedMutex mutex;
  int counted = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 1000; ++k) {
        const KeyedMutex::Lock lock(&mutex, "a");
        ++counted;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(counted, 8000);
}

TEST(KeyedMutexTest, LetsOthersHoldOtherKeys) {
  KeyedMutex mutex;
  const KeyedMutex::Lock one(&mutex, "a");
  bool held = false;
  std::thread([&] {
    const KeyedMutex::Lock other(&mutex, "b");
    held = true;
  }).join();
  EXPECT_TRUE(held);
}

}  // namespace
}  // namespace muster::base
