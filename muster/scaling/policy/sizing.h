// Sizing by queueing theory (M/M/c), for promises that leave no slack to queue in.
#pragma once

#include "absl/time/time.h"
#include "muster/scaling/policy/deadline_profile.h"
#include "muster/scaling/policy/policy.h"

namespace muster::scaling::policy {

// The probability that an arrival has to wait, with `servers` and a load of `erlangs` (arrivals per
// second times seconds of service). 1 where the load is not below the servers. Exact for any number
// of servers: the recursion adds only positive terms.
double ErlangC(int servers, double erlangs);

// Arrivals, and what they were promised.
struct RateLoad {
  double arrivals_per_second = 0;
  absl::Duration service_time = absl::ZeroDuration();
  absl::Duration deadline = absl::ZeroDuration();
  double risk = 0.01;  // ε: the share that may be late
};

// The least number of servers with which at most `risk` of the arrivals wait for longer than
// deadline − service_time. At most `most`, which is returned where none suffices. 0: no load.
int ServersForRate(const RateLoad& load, int most);

// Threads before replicas: a dequeue task more costs nothing to start.

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

// The standby pool: warm replicas that only have to be let go, for promises that are shorter than
// a cold start.

// How many parked replicas meet the promise of a batch of `items` (the 99th percentile of what
// comes) that finds nobody at work. 0 where a cold start is fast enough, or no number would do.
int StandbySize(double items, const Supply& supply, const Promise& promise);

}  // namespace muster::scaling::policy
