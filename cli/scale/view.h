// SPDX-License-Identifier: Apache-2.0

// How `muster scale` shows targets and decisions.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "cli/output/environment.h"
#include "cli/output/format.h"
#include "google/protobuf/duration.pb.h"
#include "muster/v1/scaling_service.pb.h"
#include "nlohmann/json.hpp"

namespace muster::cli {

// Times of messages, for people and for programs.

// "in 4 min 30 s", "12 s ago", "now".
std::string FromNow(absl::Time time, absl::Time now);

// "4 min 30 s".
std::string DurationCell(const google::protobuf::Duration& duration);

// Null where the message lacks it, as of TimeJson.
nlohmann::ordered_json SecondsJson(bool has, const google::protobuf::Duration& duration);

// What a scaling agent has decided, for people and for programs.

// The rows of `muster scale decisions`.
Table DecisionColumns();
std::vector<std::string> DecisionRow(const v1::ScalingDecision& decision);
nlohmann::ordered_json DecisionJson(const v1::ScalingDecision& decision);
// The decision on one line, for decisions that arrive one by one.
std::string DecisionLine(const v1::ScalingDecision& decision);

// One decision of a scaling agent in full: `muster scale explain`.

void PrintExplained(const v1::GetDecisionResponse& explained, std::ostream& out);
nlohmann::ordered_json ExplainedJson(const v1::GetDecisionResponse& explained);

// The status of a scaling agent's target, for people and for programs.

// The rows of `muster scale status`.
Table TargetColumns();
// Times are told from `now`.
std::vector<std::string> TargetRow(const v1::ScalingTarget& target, absl::Time now);
nlohmann::ordered_json OverrideJson(const v1::ScalingOverride& held);
nlohmann::ordered_json TargetJson(const v1::ScalingTarget& target);

}  // namespace muster::cli
