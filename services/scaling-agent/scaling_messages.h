// SPDX-License-Identifier: Apache-2.0

// Builds the messages of the scaling service from a policy's observations and decisions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/actuator/actuator.h"
#include "muster/scaling/policy/deadline_policy.h"
#include "muster/scaling/policy/policy.h"
#include "muster/v1/scaling_service.pb.h"
#include "services/scaling-agent/overrides.h"
#include "services/scaling-agent/weighed_decision.h"

namespace muster::scaling_agent {

// The record of a decision, without id, target and action.
v1::GetDecisionResponse RecordOf(const Weighed& weighed);

// The outcome of an order. `is_dry`: the actuator was not meant to change anything.
v1::ScalingAction ActionOf(const absl::StatusOr<actuator::Outcome>& outcome, bool is_dry,
                           absl::Time now);

v1::ReplicaCounts CountsOf(const scaling::policy::Fleet& fleet);
v1::ScalingOverride ToProto(const Override& override);

// The last observation of a target, and the options that a policy judges it by.
struct Snapshot {
  std::string target;
  scaling::policy::Observation observation;
  scaling::policy::DeadlineOptions options;
  std::optional<double> forecast = std::nullopt;  // as of Policy
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
