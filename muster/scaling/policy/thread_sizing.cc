#include "muster/scaling/policy/thread_sizing.h"

#include <algorithm>

namespace muster::scaling::policy {

ThreadSizing SizeThreads(const Fleet& fleet, const Estimates& estimates) {
  const int now = std::max(1, fleet.tasks);
  ThreadSizing same{now, 1};
  // No processor time at all: nobody works yet, so nothing was measured.
  if (fleet.ready == 0 || !(estimates.cpu_share > 0) || IsThrottled(estimates)) return same;
  const double room = std::min(2.0, kFullCpu / estimates.cpu_share);
  const double most = std::min<double>(now * room, fleet.max_tasks);
  const int tasks = std::max(now, static_cast<int>(most));
  return {tasks, static_cast<double>(tasks) / now};
}

}  // namespace muster::scaling::policy
