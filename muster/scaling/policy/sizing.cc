// SPDX-License-Identifier: Apache-2.0
#include "muster/scaling/policy/sizing.h"

#include <algorithm>
#include <cmath>

namespace muster::scaling::policy {

namespace {

// Erlang B for one more server: the probability that all servers are busy if arrivals cannot wait.
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

ThreadSizing SizeThreads(const Fleet& fleet, const Estimates& estimates) {
  const int now = std::max(1, fleet.tasks);
  ThreadSizing same{now, 1};
  // No processor time at all means that no replica works yet, so nothing was measured.
  if (fleet.ready == 0 || !(estimates.cpu_share > 0) || IsThrottled(estimates)) return same;
  const double room = std::min(2.0, kFullCpu / estimates.cpu_share);
  const double most = std::min<double>(now * room, fleet.max_tasks);
  const int tasks = std::max(now, static_cast<int>(most));
  return {tasks, static_cast<double>(tasks) / now};
}

int StandbySize(double items, const Supply& supply, const Promise& promise) {
  if (promise.deadline >= supply.cold_start + promise.margin()) return 0;
  const double run =
      absl::ToDoubleSeconds(promise.deadline - promise.service_time - promise.margin());
  if (!(run > 0) || !(supply.items_per_second > 0) || !(items > 0)) return 0;
  const double replicas = std::ceil(items / (supply.items_per_second * run));
  return static_cast<int>(std::min<double>(replicas, kMaxReplicas));
}

}  // namespace muster::scaling::policy
