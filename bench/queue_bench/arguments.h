// SPDX-License-Identifier: Apache-2.0

// The command-line arguments of queue_bench.
#pragma once

#include <cstdint>
#include <string>

namespace muster::queue_bench {

struct Arguments {
  int64_t messages = 200'000;  // that each step moves through each side
  int64_t depth = 1'000'000;
  int64_t queues = 10'000;
  int64_t passed = 5'000'000;   // through the queue before it is measured again; 0 skips
  int64_t beanstalkd = 10'000;  // messages that beanstalkd moves in each of its steps; 0 skips
  std::string directory;        // not there yet
};

// Ends the process when an argument is wrong.
Arguments ParseArguments(int argc, char** argv);

}  // namespace muster::queue_bench
