// SPDX-License-Identifier: Apache-2.0
#include "muster/base/in_parallel.h"

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>
#include <vector>

namespace muster::base {

void InParallel(size_t count, size_t threads, absl::FunctionRef<void(size_t)> fn) {
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < count; i = next++) fn(i);
  };
  std::vector<std::thread> others;
  try {
    for (size_t i = 1; i < std::min(count, threads); ++i) others.emplace_back(work);
  } catch (const std::system_error&) {
  }
  work();
  for (std::thread& other : others) other.join();
}

}  // namespace muster::base
