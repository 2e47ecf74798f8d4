// SPDX-License-Identifier: Apache-2.0

// LoadMeter: how busy this instance is with one job, for its heartbeats.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "muster/listener/listener.h"
#include "muster/v1/heartbeat.pb.h"

namespace muster::listener {

// Totals of what an instance has done for a job, since its listener was made.
struct ObservedLoad {
  ListenerLoad load;          // QueueListener::Load
  ListenerCounters counters;  // QueueListener::counters
  uint64_t transactions = 0;  // transactions processed
};

// Not thread-safe.
class LoadMeter {
 public:
  explicit LoadMeter(std::string job) : job_(std::move(job)) {}

  // Returns the load over `window`: the time since the last call or, on the first call, since the
  // listener was made. Depths are as the listener last saw them.
  v1::JobLoad Measure(ObservedLoad now, absl::Duration window);

 private:
  const std::string job_;
  ObservedLoad before_;
};

}  // namespace muster::listener
