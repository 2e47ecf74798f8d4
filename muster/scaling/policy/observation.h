// What a scaling policy sees: one target, at one instant. The service fills it from heartbeats,
// triggers and queue statistics, the simulator from its model, tests by hand; a policy cannot tell
// which.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace muster::scaling::policy {

// Work that a producer has just put for a target. Triggers carry it; some are lost.
struct Announcement {
  absl::Time at;      // when it was put
  int64_t items = 0;  // work items, above 0
  uint64_t id = 0;    // of the trigger: the same one again says nothing new; 0: it has none
};

// What a queue's own statistics said.
struct QueueReading {
  std::string queue;
  absl::Time at;                                     // when they were taken; a reading can be old
  int64_t ready = 0;                                 // items that wait
  int64_t in_flight = 0;                             // items that workers hold
  absl::Duration oldest_age = absl::ZeroDuration();  // of the oldest ready item, at `at`
  int64_t total_in = 0;                              // items ever put, and ever finished
  int64_t total_out = 0;
};

// The replicas of the target, as its actuator and their heartbeats tell. One that starts is not
// ready; one that drains takes nothing new and counts nowhere else.
struct Fleet {
  int ready = 0;     // work, or wait for work
  int draining = 0;  // finish what they hold, then go
  int parked = 0;    // started and warm, but not let go: the standby pool
  // For each replica that is starting, when it is expected to be ready; earliest first. May lie in
  // the past: it is late.
  std::vector<absl::Time> starting;
  // For each ready replica that holds no work, since when; longest idle first.
  std::vector<absl::Time> idle_since;
  // Dequeue tasks of each replica, now and at most.
  int tasks = 1;
  int max_tasks = 1;

  int committed() const { return ready + static_cast<int>(starting.size()); }
};

// What is known of the speed of things; learned, hence never exact.
struct Estimates {
  // Items per second of one replica at its present number of tasks: a lower bound, because
  // optimism is what costs. 0: nothing is known yet.
  double items_per_second = 0;
  absl::Duration service_time = absl::ZeroDuration();  // of one item: S
  // From a scaling action to a new replica's first dequeue, p95: L. The same for a parked one: L_r.
  absl::Duration cold_start = absl::ZeroDuration();
  absl::Duration release = absl::ZeroDuration();
  double cpu_share = 0;        // of what the replicas may use: 0 to 1
  double throttled_share = 0;  // of the store's calls: 0 to 1
};

// What the rules in force allow at this instant.
struct Bounds {
  int min = 0;
  int max = 1000;
  int standby = 0;  // parked replicas to keep beside them
};

struct Observation {
  absl::Time now;
  Bounds bounds;
  Fleet fleet;
  Estimates estimates;
  // One for each queue of the target; empty: its statistics could not be had.
  std::vector<QueueReading> queues;
};

}  // namespace muster::scaling::policy
