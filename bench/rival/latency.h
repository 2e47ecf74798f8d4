// SPDX-License-Identifier: Apache-2.0

// Measures the time from a publish, from idle, until a worker in another process has the message.
#pragma once

#include <string>
#include <vector>

namespace rival {

enum class Path {
  kJetStream,  // published to a stream on files; the worker keeps a fetch open
  kPlain,      // published to a subscriber, with nothing stored
};

struct LatencyOptions {
  std::string server;  // nats://HOST:PORT
  Path path = Path::kJetStream;
  int samples = 50;
  int min_gap_ms = 100;  // between two messages, at random
  int max_gap_ms = 1000;
};

// Microseconds from before the publish to the worker's next statement after it has the message.
// Starts the worker with fork(): call it before other threads start.
std::vector<double> MeasureLatency(const LatencyOptions& options);

}  // namespace rival
