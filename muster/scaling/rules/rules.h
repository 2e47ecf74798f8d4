// SPDX-License-Identifier: Apache-2.0

// Rules: the demands on the scaling agent, as read from a rules file and checked.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/scaling/rules/calendar.h"
#include "muster/scaling/rules/condition.h"
#include "muster/scaling/rules/limits.h"
#include "muster/yaml/problems.h"

namespace muster::scaling::rules {

// Whether `queue` is the queue of this name, or one of its partitions: "retail-in-0" and
// "retail-in-12" match "retail-in". A name that no queue can have matches the names that muster
// derives from it: "my_job-in" matches the queue that muster made for "my_job-in-0".
bool MatchesQueue(absl::string_view name, absl::string_view queue);

// What the agent does with its decisions.
enum class Mode {
  kObserve,  // decides and records
  kNotify,   // tells people too
  kAct,      // carries them out
};

// The allowed numbers of replicas, both ends included; 0 <= min <= max.
struct Range {
  int min = 0;
  int max = kDefaultMaxReplicas;

  bool operator==(const Range& other) const = default;
};

// Who gives a target its replicas.
enum class ActuatedBy {
  kAgent,  // the agent's own actuator
  // Another autoscaler, which asks the agent for the number (ExternalScaler, or the metrics). The
  // agent observes the target, and gives no order.
  kExternal,
};

// A workload with a number of replicas that the agent scales.
struct Target {
  std::string id;                   // its name in the rules
  std::string kind;                 // one of deployment, statefulset, process, threads, dry-run
  std::string name;                 // the actuator's name for it
  std::vector<std::string> queues;  // the queues that it works on, at least one
  std::optional<absl::Duration> sla_max;  // the promised latency
  std::optional<absl::Duration>
      sla_aim;            // at most sla_max: a better latency that is worth replicas
  double patience = 0.5;  // how much of a replica may be short before one is added, 0 to 1
  bool forecast = false;  // idle replicas stay for what past weeks brought at this time
  Range range;            // the outer limits: no constraint exceeds them
  ActuatedBy actuated_by = ActuatedBy::kAgent;
};

// How long before a window its floor comes in force.
struct Prewarm {
  bool by_cold_start = false;                  // as long as a replica takes to start
  absl::Duration lead = absl::ZeroDuration();  // when not
};

// States at least one of range, budget and standby. For each of the three, the constraint in force
// with the highest rank that states it applies. Constraints of equal rank do not contradict each
// other.
struct Constraint {
  std::string name;
  int rank = 0;
  std::string target;
  std::optional<Range> range;
  std::optional<int> budget;     // replica-minutes in any hour
  std::optional<int> standby;    // parked replicas
  std::optional<Calendar> when;  // nullopt: always
  Prewarm prewarm;
};

enum class Metric {
  // Metrics of a queue.
  kDepth,
  kInFlight,
  kOldestAge,
  kArrived,
  kFinished,
  // Metrics of a target.
  kCpu,
  kThrottled,
  kReplicas,
  kStarting,
  kIdle,
  kServiceTime,
};

enum class Aggregate { kLast, kAverage, kMin, kMax, kGrowth };

struct Operand {
  std::string name;
  std::string target;  // the target that owns the queue, or that is measured
  std::string queue;   // empty: a metric of the target
  Metric metric = Metric::kDepth;
  Aggregate aggregate = Aggregate::kLast;
  absl::Duration over =
      absl::ZeroDuration();  // the window of all aggregates but kLast, kMinOver to kMaxOver
};

// "+25%", "+3", "-1": relative to the present replicas.
struct Scale {
  int amount = 0;  // not 0
  bool is_percent = false;
};
struct SetReplicas {
  int replicas = 0;
};
enum class Hold { kUp, kDown };  // no growth; no shrinking

using Action = std::variant<Scale, SetReplicas, Hold>;

struct Reaction {
  int rank = 0;
  std::string target;
  Condition condition;
  Action action;
};

struct Stabilizer {
  absl::Duration up_cooldown = absl::ZeroDuration();  // between two steps up
  // How long a replica is idle before it goes; nullopt (`auto`): the policy decides.
  std::optional<absl::Duration> idle_hold;
};

struct MetricLoss {
  enum class Keep { kMaxOfCurrentAndFloor, kCurrent, kFloor };
  int after = 3;  // missing readings in a row, one a second
  Keep keep = Keep::kMaxOfCurrentAndFloor;
};

// Immutable once read. Thread-safe.
struct Rules {
  Mode mode = Mode::kAct;
  std::vector<Target> targets;          // at least one; the names in each list are distinct
  std::vector<Constraint> constraints;  // of known targets
  std::vector<Operand> operands;        // of known queues and targets
  std::vector<Reaction> reactions;      // use operands of their own target, and `sla`
  Stabilizer stabilizer;
  MetricLoss on_metric_loss;
  // What the file says in a form that a later version will not understand; a bounded number.
  std::vector<yaml::Problem> warnings;

  // nullptr: no entry has this name.
  const Target* FindTarget(absl::string_view id) const;
  const Operand* FindOperand(absl::string_view name) const;
};

// The name of the target's sla.max in conditions.
inline constexpr char kSlaOperand[] = "sla";

bool IsQueueMetric(Metric metric);
// The kind of an operand's value; a growth has the same kind, per minute.
Kind KindOfMetric(Metric metric);

}  // namespace muster::scaling::rules
