// SPDX-License-Identifier: Apache-2.0

// What the messages carry.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace muster::queue_bench {

inline constexpr size_t kBodyBytes = 1024;

// Makes bodies of noise, so that no compression flatters a side. Not thread-safe.
class Bodies {
 public:
  std::vector<std::string> Next(int count);

 private:
  std::string NextBody();

  uint64_t state_ = 1;
};

}  // namespace muster::queue_bench
