// Sizing by queueing theory (M/M/c), for promises that leave no slack to queue in.
#pragma once

#include "absl/time/time.h"

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

}  // namespace muster::scaling::policy
