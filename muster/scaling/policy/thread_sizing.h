// Threads before replicas: a dequeue task more costs nothing to start.
#pragma once

#include "muster/scaling/policy/observation.h"

namespace muster::scaling::policy {

inline constexpr double kFullCpu = 0.85;    // above, more tasks only wait for each other
inline constexpr double kThrottled = 0.01;  // of the calls; above, more tasks or replicas do harm

inline bool IsThrottled(const Estimates& estimates) {
  return estimates.throttled_share > kThrottled;
}

struct ThreadSizing {
  int tasks = 1;    // of each replica
  double gain = 1;  // how much faster a replica becomes, as far as one knows: 1 or more
};

// The tasks that replicas with work to do should have. More than now only where the processor is
// known to have room, nothing is throttled, and at most twice as many: then one looks again.
ThreadSizing SizeThreads(const Fleet& fleet, const Estimates& estimates);

}  // namespace muster::scaling::policy
