// SPDX-License-Identifier: Apache-2.0

// The interface of scaling policies: what a policy observes, what it decides, and the bounds of its
// memory and numbers, each with its reason.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"

namespace muster::scaling::policy {

// Cohorts of one target. Deadlines are distinguished to about a five-hundredth of the time that
// they span. A decision each second looks at up to twice as many.
inline constexpr size_t kMaxCohorts = 512;

// Items of one reading, announcement or ledger; more is an error. Sums fit 64 bits, and a double
// holds each number exactly.
inline constexpr int64_t kMaxItems = int64_t{1} << 50;

// Replicas that a formula may ask for before bounds cut it: far above any, far below overflow.
inline constexpr int kMaxReplicas = 1'000'000;

// Unannounced work is dated at most this far back: older work is late by any promise.
inline constexpr absl::Duration kOldestWork = absl::Hours(24 * 14);

// How many ids of announcements are remembered. A duplicate of a trigger arrives soon after it.
inline constexpr size_t kRememberedAnnouncements = 1024;

// How far back the estimate of work done since a reading reaches.
inline constexpr absl::Duration kEstimateHorizon = absl::Minutes(5);

// A policy observes one target at one instant. The service fills the observation from heartbeats,
// triggers and queue statistics, the simulator from its model, tests by hand; a policy cannot tell
// the difference.

// Work that a producer has just put for a target. Triggers carry it; some are lost.
struct Announcement {
  absl::Time at;      // when it was put
  int64_t items = 0;  // work items, above 0
  uint64_t id = 0;    // of the trigger; a repeated id is ignored; 0: no id
};

// The statistics of one queue.
struct QueueReading {
  std::string queue;
  absl::Time at;          // when the store took them; a reading can be old
  int64_t ready = 0;      // items that wait: in the queue, or for room in it
  int64_t in_flight = 0;  // items that workers hold
  absl::Duration oldest_age = absl::ZeroDuration();  // of the oldest ready item, at `at`
  int64_t total_in = 0;                              // items ever put, and ever finished
  int64_t total_out = 0;
};

// The replicas of the target, from its actuator and their heartbeats. A starting replica does not
// count as ready; a draining one takes no new work and counts nowhere else.
struct Fleet {
  int ready = 0;     // work, or wait for work
  int draining = 0;  // finish what they hold, then go
  int parked = 0;    // started and warm, but not at work: the standby pool
  // For each replica that is starting, when it is expected to be ready; earliest first. A time in
  // the past means that the replica is late.
  std::vector<absl::Time> starting;
  // For each ready replica without work, since when it is idle; longest idle first.
  std::vector<absl::Time> idle_since;
  // Dequeue tasks of each replica: at present, and the maximum.
  int tasks = 1;
  int max_tasks = 1;

  int committed() const { return ready + static_cast<int>(starting.size()); }
};

// Learned speeds and times; never exact.
struct Estimates {
  // Items per second of one replica at its present number of tasks: a lower bound, because an
  // optimistic estimate makes work late. 0: not known yet.
  double items_per_second = 0;
  absl::Duration service_time = absl::ZeroDuration();  // of one item: S
  // From a scaling action to a new replica's first dequeue, p95: L. The same for a parked replica:
  // L_r.
  absl::Duration cold_start = absl::ZeroDuration();
  absl::Duration release = absl::ZeroDuration();
  double cpu_share = 0;        // of what the replicas may use: 0 to 1
  double throttled_share = 0;  // of the store's calls: 0 to 1
};

// The limits that the rules set at this instant.
struct Bounds {
  int min = 0;
  int max = 1000;
  int standby = 0;  // parked replicas to keep in addition
};

struct Observation {
  absl::Time now;
  Bounds bounds;
  Fleet fleet;
  Estimates estimates;
  // One reading for each queue of the target; empty: the statistics are not available.
  std::vector<QueueReading> queues;
};

// Makes an observation fit for arithmetic: negative, NaN and infinite numbers become 0, a maximum
// below its minimum becomes the minimum. A replica that is late by some time is expected after as
// long again. Starting times are sorted, and none lies before now.
Observation Sane(const Observation& raw);

// The reason of a decision's number: the one factor that would have changed the number if it had
// been different.
enum class Binding {
  kNothing,     // the present replicas fit
  kDeadline,    // a deadline needs more
  kLateStart,   // patience is over: a replica that starts later could not help any more
  kRate,        // arrivals against service time: there is no slack to queue in (Erlang C)
  kMin,         // the rules' lower bound
  kMax,         // the rules' upper bound
  kHold,        // idle replicas are kept for as long as starting them again would cost
  kForecast,    // idle replicas are kept for the work that usually comes at this hour
  kIdle,        // replicas are let go
  kThreads,     // more tasks in the present replicas, before more replicas
  kThrottled,   // the store throttles: more replicas would make it worse
  kNoMetrics,   // nothing is known: the present replicas stay
  kReaction,    // a reaction in the user's rules
  kStabilizer,  // a rule's cool-down
  kOverride,    // a person demanded the number
  kPolicy,      // the reason of another policy
};

std::string_view BindingName(Binding binding);

// Whether all known work can be done by its deadlines, and if not, how many replicas would do it.
struct Feasibility {
  bool feasible = true;
  int needs = 0;  // replicas that suffice, ignoring the bounds; 0: no number suffices
  absl::Duration late_by = absl::ZeroDuration();  // of the worst item, with the decided replicas
  // When all known work is done with the decided replicas. InfiniteFuture: never.
  absl::Time finish = absl::InfinitePast();
};

struct Decision {
  int replicas = 0;  // the number of ready and starting replicas to have from now on
  int tasks = 1;     // dequeue tasks of each replica
  int standby = 0;   // parked replicas in addition
  Binding binding = Binding::kNothing;
  // The number that the work alone asks for, before any bound, hold or rule.
  int wanted = 0;
  // The deadline that determined the number, if one did.
  std::optional<absl::Time> deadline;
  Feasibility feasibility;
};

// Policy: turns observations of a target into decisions. The same object decides in the service, in
// the simulator and in tests.

// Pure: no I/O, no clock, no randomness except from a seed that its creator gives. Not thread-safe.
// Callers ensure that time never goes backwards between calls.
class Policy {
 public:
  virtual ~Policy() = default;

  // Tells that a producer put work. A policy that only polls ignores it.
  virtual void Announce(const Announcement& announcement) = 0;

  // Called after announcements, and each second. Idempotent at a fixed point: after a decision is
  // carried out, the same observation yields the same decision.
  virtual Decision Decide(const Observation& observation) = 0;

  // The arrivals that the policy expects, in items per second, as of the last decision; nullopt: it
  // expects nothing. For people; the decision has taken it into account.
  virtual std::optional<double> forecast() const { return std::nullopt; }
};

}  // namespace muster::scaling::policy
