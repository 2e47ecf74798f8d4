// What bounds the memory and the numbers of scaling, with the reason of each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"

namespace muster::scaling::policy {

// Cohorts of one target. A deadline is told apart from its neighbours to about a five-hundredth of
// the time that they span; twice that is looked at each second.
inline constexpr size_t kMaxCohorts = 512;

// Items of one reading, announcement or ledger: more is garbage. Sums of it fit 64 bits, and a
// double holds each exactly.
inline constexpr int64_t kMaxItems = int64_t{1} << 50;

// Replicas that a formula may ask for before bounds cut it: far above any, far below overflow.
inline constexpr int kMaxReplicas = 1'000'000;

// Work that nobody announced is not dated further back: it is late by any promise.
inline constexpr absl::Duration kOldestWork = absl::Hours(24 * 14);

// Ids of announcements that are remembered. A trigger that comes twice comes soon.
inline constexpr size_t kRememberedAnnouncements = 1024;

// How far back the work that was done since a reading is reckoned.
inline constexpr absl::Duration kEstimateHorizon = absl::Minutes(5);

// What a scaling policy sees: one target, at one instant. The service fills it from heartbeats,
// triggers and queue statistics, the simulator from its model, tests by hand; a policy cannot tell
// which.

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

// What was observed, made fit for arithmetic.

// Negative, NaN and infinite numbers become 0, a maximum below its minimum becomes the minimum.
// Replicas that are late in starting are expected to be late by as long again. Starting times
// ascend, and none lies before now.
Observation Sane(const Observation& raw);

// What a scaling policy wants, and why.

// What made the number what it is: the one thing that, had it been otherwise, would have changed
// it.
enum class Binding {
  kNothing,     // what there is fits
  kDeadline,    // a deadline needs more
  kLateStart,   // patience is over: later, one more replica could not help any more
  kRate,        // arrivals against service time: there is no slack to queue in (Erlang C)
  kMin,         // the rules' lower bound
  kMax,         // the rules' upper bound
  kHold,        // idle replicas are kept for as long as starting them again would cost
  kForecast,    // idle replicas are kept for what comes at this hour
  kIdle,        // replicas are let go
  kThreads,     // more tasks in the replicas there are, before more replicas
  kThrottled,   // the store throttles: more replicas would make it worse
  kNoMetrics,   // nothing is known: what there is stays
  kReaction,    // a rule of the user's
  kStabilizer,  // a rule's cool-down
  kOverride,    // somebody said so
  kPolicy,      // another policy's own reason
};

std::string_view BindingName(Binding binding);

// Whether all known work can be done by its deadlines, and if not, what would make it so.
struct Feasibility {
  bool feasible = true;
  int needs = 0;  // replicas that would do it, whatever the bounds say; 0: no number would
  absl::Duration late_by = absl::ZeroDuration();  // of the worst item, with what is decided
  // When all work that is known now is done, with what is decided. InfiniteFuture: never.
  absl::Time finish = absl::InfinitePast();
};

struct Decision {
  int replicas = 0;  // ready and starting together, as they should be from now on
  int tasks = 1;     // dequeue tasks of each
  int standby = 0;   // parked ones beside them
  Binding binding = Binding::kNothing;
  // What the work alone asks for, before any bound, hold or rule; the candidate that lost.
  int wanted = 0;
  // The deadline that decided, if one did.
  std::optional<absl::Time> deadline;
  Feasibility feasibility;
};

// Policy: the seam between what is seen of a target and what shall become of it. The same object
// decides in the service, in the simulator and in tests.

// Pure: no I/O, no clock of its own, no randomness that was not seeded by its maker. Not
// thread-safe. Time never goes backwards between calls; callers see to that.
class Policy {
 public:
  virtual ~Policy() = default;

  // Work was put. A policy that only polls does not care.
  virtual void Announce(const Announcement& announcement) = 0;

  // Called after announcements, and each second. Idempotent at a fixed point: the same observation
  // again, with what was decided carried out, yields the same decision.
  virtual Decision Decide(const Observation& observation) = 0;
};

}  // namespace muster::scaling::policy
