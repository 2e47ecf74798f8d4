// Where a target stands, as the scaling service tells it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "muster/scaling/policy/deadline_options.h"
#include "muster/scaling/policy/observation.h"
#include "muster/v1/scaling_service.pb.h"
#include "services/scaling-agent/overrides.h"

namespace muster::scaling_agent {

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
