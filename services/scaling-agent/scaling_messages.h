// Builds the messages of the scaling service from a policy's observations and decisions.
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

// Everything that led to a decision, and the decision.
struct Weighed {
  // Its bounds are the rules' bounds.
  scaling::policy::Observation observation;
  scaling::policy::Decision by_policy;  // the policy's own answer
  scaling::rules::RuleTrace trace;
  std::optional<Override> override;
  bool is_blind = false;  // no replica may go now, whatever the policy says
  scaling::policy::Decision decided;
};

// The next three functions correct a policy's answer. Call them in this order.
//
// Keeps at least `there` replicas, because the agent cannot see all that exist.
void KeepAtLeast(int there, Weighed* weighed);
// Applies an override; nullopt: there is none. Of the rules only `range` limits it.
void Demand(const std::optional<Override>& override, const scaling::rules::Range& range,
            Weighed* weighed);
// Keeps replicas and standby replicas together within `most`, the target's own maximum.
void BoundStandby(int most, Weighed* weighed);

// The record of a decision, without id, target and action.
v1::GetDecisionResponse RecordOf(const Weighed& weighed);

// The outcome of an order. `is_dry`: the actuator was not meant to change anything.
v1::ScalingAction ActionOf(const absl::StatusOr<scaling::actuator::Outcome>& outcome, bool is_dry,
                           absl::Time now);

v1::ReplicaCounts CountsOf(const scaling::policy::Fleet& fleet);
v1::ScalingOverride ToProto(const Override& override);

// The last observation of a target, and the options that a policy judges it by.
struct Snapshot {
  std::string target;
  scaling::policy::Observation observation;
  scaling::policy::DeadlineOptions options;
};

struct TargetReport {
  std::string target;
  std::vector<std::string> queues;
  std::string trouble;                      // empty: all is well
  std::optional<v1::ScalingDecision> last;  // decision
  std::optional<Override> override;
  std::optional<Snapshot> seen;
};

v1::ScalingTarget StatusOf(const TargetReport& report);

}  // namespace muster::scaling_agent
