// SPDX-License-Identifier: Apache-2.0

// Sizing by queueing theory (M/M/c) for promises that leave no slack to queue in, and the sizing of
// dequeue tasks and of the standby pool.
#pragma once

#include "absl/time/time.h"
#include "muster/scaling/policy/deadline_profile.h"
#include "muster/scaling/policy/policy.h"

namespace muster::scaling::policy {

// The probability that an arrival has to wait, with `servers` and a load of `erlangs` (arrivals per
// second times seconds of service). 1 where `erlangs` is not below `servers`. Exact for any number
// of servers: the recursion adds only positive terms.
double ErlangC(int servers, double erlangs);

// Arrivals and their promise.
struct RateLoad {
  double arrivals_per_second = 0;
  absl::Duration service_time = absl::ZeroDuration();
  absl::Duration deadline = absl::ZeroDuration();
  double risk = 0.01;  // ε: the share that may be late
};

// The least number of servers with which at most `risk` of the arrivals wait for longer than
// deadline − service_time. Returns `most` if no smaller number suffices, and 0 for no load.
int ServersForRate(const RateLoad& load, int most);

// A policy adds threads before replicas: one more dequeue task costs nothing to start.

inline constexpr double kFullCpu = 0.85;  // above this share, more tasks only wait for each other
inline constexpr double kThrottled =
    0.01;  // share of the calls; above it, more tasks or replicas do harm

inline bool IsThrottled(const Estimates& estimates) {
  return estimates.throttled_share > kThrottled;
}

struct ThreadSizing {
  int tasks = 1;    // of each replica
  double gain = 1;  // the estimated speed-up of a replica: 1 or more
};

// The number of tasks that busy replicas should have. It grows only where the processor is known to
// have room and the store does not throttle, and at most doubles at each look.
ThreadSizing SizeThreads(const Fleet& fleet, const Estimates& estimates);

// The standby pool: warm, parked replicas that can work at once, for promises shorter than a cold
// start.

// The number of parked replicas that meet the promise for a batch of `items` (the 99th percentile
// of the batches) when no replica is at work. 0 where a cold start is fast enough, or where no
// number suffices.
int StandbySize(double items, const Supply& supply, const Promise& promise);

}  // namespace muster::scaling::policy
