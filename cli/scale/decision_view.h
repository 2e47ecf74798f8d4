// What a scaling agent has decided, for people and for programs.
#pragma once

#include <string>
#include <vector>

#include "cli/output/table.h"
#include "muster/v1/scaling_service.pb.h"
#include "nlohmann/json.hpp"

namespace muster::cli {

// "yes"; "no: 53 s late, needs 5".
std::string FeasibleCell(const v1::ScalingDecision& decision);

// The rows of `muster scale decisions`.
Table DecisionColumns();
std::vector<std::string> DecisionRow(const v1::ScalingDecision& decision);
nlohmann::ordered_json DecisionJson(const v1::ScalingDecision& decision);
// The same on one line, for those that come one by one.
std::string DecisionLine(const v1::ScalingDecision& decision);

// Its action, "-" where there is none: "nothing to do", "done".
std::string ActionCell(const v1::ScalingDecision& decision);

}  // namespace muster::cli
