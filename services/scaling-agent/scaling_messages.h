// What is told of a decision: the messages of the scaling service, from what the policy saw and
// said.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/scaling/actuator/actuator.h"
#include "muster/scaling/policy/deadline_policy.h"
#include "muster/scaling/policy/policy.h"
#include "muster/scaling/rules/ruled_policy.h"
#include "muster/v1/scaling_service.pb.h"
#include "services/scaling-agent/overrides.h"

namespace muster::scaling_agent {

// All that made a decision.
struct Weighed {
  // The bounds are those that the rules set.
  scaling::policy::Observation observation;
  scaling::policy::Decision by_policy;  // its answer
  scaling::rules::RuleTrace trace;
  std::optional<Override> override;
  bool is_blind = false;  // nobody may go now, whatever the policy says
  scaling::policy::Decision decided;
};

// What people and caution make of a policy's answer, in this order.
//
// So many stay, because not all that there is can be seen.
void KeepAtLeast(int there, Weighed* weighed);
// Somebody demands a number; nullopt: nobody does. Only `range` stays in force.
void Demand(const std::optional<Override>& override, const scaling::rules::Range& range,
            Weighed* weighed);
// Nothing leaves the target's own most, those on standby included.
void BoundStandby(int most, Weighed* weighed);

// Without id, target and action.
v1::GetDecisionResponse RecordOf(const Weighed& weighed);

// What became of an order. `is_dry`: nothing was to.
v1::ScalingAction ActionOf(const absl::StatusOr<scaling::actuator::Outcome>& outcome, bool is_dry,
                           absl::Time now);

v1::ReplicaCounts CountsOf(const scaling::policy::Fleet& fleet);
v1::ScalingOverride ToProto(const Override& override);

// Where a target stands, as the scaling service tells it.

// What was seen last, and by what it is judged.
struct Snapshot {
  std::string target;
  scaling::policy::Observation observation;
  scaling::policy::DeadlineOptions options;
};

struct TargetReport {
  std::string target;
  std::vector<std::string> queues;
  std::string trouble;                      // empty: there is none
  std::optional<v1::ScalingDecision> last;  // decision
  std::optional<Override> override;
  std::optional<Snapshot> seen;
};

v1::ScalingTarget StatusOf(const TargetReport& report);

}  // namespace muster::scaling_agent
