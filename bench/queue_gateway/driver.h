// SPDX-License-Identifier: Apache-2.0

// Driver: one thread that keeps many connections at work, and clocks their requests.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/queue_gateway/work.h"

namespace muster::gateway_bench {

struct Outcome {
  double seconds = 0;
  int64_t messages = 0;
  std::vector<double> request_ms;  // of each request, in order of size
  double cpu_seconds = 0;          // of this program: near `seconds`, it bounds the figures

  // The value that `share` of the requests do not exceed.
  double Percentile(double share) const;
};

struct Pace {
  double messages_per_second = 0;  // 0: as fast as the server replies
};

// Runs `work` to its end. With a pace, what begins is due by the clock, and the time it waits for a
// free connection counts as the server's.
Outcome RunWork(const std::string& host, int port, int connections, Pace pace, Work* work);

}  // namespace muster::gateway_bench
