// Where a target of the scaling agent stands, for people and for programs.
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "cli/output/table.h"
#include "muster/v1/scaling_service.pb.h"
#include "nlohmann/json.hpp"

namespace muster::cli {

// The rows of `muster scale status`.
Table TargetColumns();
// Times are told from `now`.
std::vector<std::string> TargetRow(const v1::ScalingTarget& target, absl::Time now);
nlohmann::ordered_json TargetJson(const v1::ScalingTarget& target);

}  // namespace muster::cli
