#include "muster/scaling/policy/erlang_c.h"

#include <algorithm>
#include <cmath>

namespace muster::scaling::policy {
namespace {

// Erlang B of one server more: the probability that all are busy when none can wait.
double NextBlocking(double blocking, int servers, double erlangs) {
  return erlangs * blocking / (servers + erlangs * blocking);
}

double WaitingFromBlocking(double blocking, int servers, double erlangs) {
  return servers * blocking / (servers - erlangs * (1 - blocking));
}

}  // namespace

double ErlangC(int servers, double erlangs) {
  if (!(erlangs > 0)) return 0;
  if (erlangs >= servers) return 1;
  double blocking = 1;
  for (int c = 1; c <= servers; ++c) blocking = NextBlocking(blocking, c, erlangs);
  return WaitingFromBlocking(blocking, servers, erlangs);
}

int ServersForRate(const RateLoad& load, int most) {
  const double service = absl::ToDoubleSeconds(load.service_time);
  const double erlangs = load.arrivals_per_second * service;
  if (!(erlangs > 0)) return 0;
  const double wait = std::max(0.0, absl::ToDoubleSeconds(load.deadline - load.service_time));
  double blocking = 1;
  for (int c = 1; c < most; ++c) {
    blocking = NextBlocking(blocking, c, erlangs);
    if (erlangs >= c) continue;
    const double late =
        WaitingFromBlocking(blocking, c, erlangs) * std::exp(-(c - erlangs) * wait / service);
    if (late <= load.risk) return c;
  }
  return most;
}

}  // namespace muster::scaling::policy
