// What rules mean by the name of a queue.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/scaling/rules/calendar.h"
#include "muster/scaling/rules/condition.h"
#include "muster/scaling/rules/limits.h"

namespace muster::scaling::rules {

// Whether `queue` is the queue of this name, or one of its partitions: "retail-in-0" and
// "retail-in-12" are what "retail-in" means. Names that no queue can have mean those that are made
// of them: "my_job-in" means the queue that muster made for "my_job-in-0".
bool MatchesQueue(absl::string_view name, absl::string_view queue);

// Rules: what people demand of the scaling agent, as read from a rules file and checked.

// What the agent does with what it decides.
enum class Mode {
  kObserve,  // decides and records
  kNotify,   // tells people too
  kAct,      // carries it out
};

// Replicas that are allowed, both ends included; 0 <= min <= max.
struct Range {
  int min = 0;
  int max = kDefaultMaxReplicas;

  bool operator==(const Range& other) const = default;
};

// Something whose replicas are scaled.
struct Target {
  std::string id;    // by which rules speak of it
  std::string kind;  // of the actuator's: deployment, statefulset, process, threads, dry-run
  std::string name;  // the actuator's name for it
  std::vector<std::string> queues;        // that it works on, at least one
  std::optional<absl::Duration> sla_max;  // the promised latency
  std::optional<absl::Duration> sla_aim;  // at most sla_max: worth replicas to be better
  double patience = 0.5;  // how much of a replica may be short before one is added, 0 to 1
  Range range;            // holds whatever else is said: no constraint leaves it
};

// How long before a window its floor is already in force.
struct Prewarm {
  bool by_cold_start = false;                  // as long as a replica takes to start
  absl::Duration lead = absl::ZeroDuration();  // when not
};

// At least one of range, budget and standby. Of all constraints of a target that are in force, each
// of the three is ruled by the one of the highest rank that states it. Constraints of equal rank
// state the same.
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
  // Of a queue.
  kDepth,
  kInFlight,
  kOldestAge,
  kArrived,
  kFinished,
  // Of a target.
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
  std::string target;  // that the queue belongs to, or that is measured
  std::string queue;   // empty: a metric of the target
  Metric metric = Metric::kDepth;
  Aggregate aggregate = Aggregate::kLast;
  absl::Duration over = absl::ZeroDuration();  // of all but kLast, kMinOver to kMaxOver
};

// "+25%", "+3", "-1": of the replicas there are.
struct Scale {
  int amount = 0;  // not 0
  bool is_percent = false;
};
struct SetReplicas {
  int replicas = 0;
};
enum class Hold { kUp, kDown };  // no more than there are; no fewer

using Action = std::variant<Scale, SetReplicas, Hold>;

struct Reaction {
  int rank = 0;
  std::string target;
  Condition condition;
  Action action;
};

struct Stabilizer {
  absl::Duration up_cooldown = absl::ZeroDuration();  // between two steps up
  // How long a replica is idle before it goes; nullopt (`auto`): as the policy says.
  std::optional<absl::Duration> idle_hold;
};

struct MetricLoss {
  enum class Keep { kMaxOfCurrentAndFloor, kCurrent, kFloor };
  int after = 3;  // readings in a row, of one a second
  Keep keep = Keep::kMaxOfCurrentAndFloor;
};

// Immutable once read. Thread-safe.
struct Rules {
  Mode mode = Mode::kAct;
  std::vector<Target> targets;          // at least one; names of each list are distinct
  std::vector<Constraint> constraints;  // of known targets
  std::vector<Operand> operands;        // of known queues and targets
  std::vector<Reaction> reactions;      // use operands of their own target, and `sla`
  Stabilizer stabilizer;
  MetricLoss on_metric_loss;

  // nullptr: there is none.
  const Target* FindTarget(absl::string_view id) const;
  const Operand* FindOperand(absl::string_view name) const;
};

// The name by which conditions mean the target's sla.max.
inline constexpr char kSlaOperand[] = "sla";

bool IsQueueMetric(Metric metric);
// Of what an operand yields; a growth is of the same kind, per minute.
Kind KindOfMetric(Metric metric);

}  // namespace muster::scaling::rules
