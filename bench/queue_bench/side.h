// SPDX-License-Identifier: Apache-2.0

// Side: one of the stores that are held against each other.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace muster::queue_bench {

inline constexpr int kBatch = 32;        // messages in a measured call
inline constexpr int kBulk = 1024;       // messages in a call that fills or drains, at most
inline constexpr int kCallers = 16;      // threads that put single messages at once
inline constexpr int64_t kDepth = 1000;  // of every side, unless a step names another depth

// A call that fails ends the process.
class Side {
 public:
  virtual ~Side() = default;

  // Returns when all bodies are on disk. Calls that run at once have different `caller`s, each in 0
  // … kCallers - 1.
  virtual void Put(int caller, std::vector<std::string> bodies) = 0;

  // Reads the oldest `count` bodies and deletes them; returns when the deletes are on disk. Ends
  // the process when there are fewer. No other call may run.
  virtual void Take(int count) = 0;
};

}  // namespace muster::queue_bench
