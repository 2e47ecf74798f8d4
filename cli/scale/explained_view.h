// One decision of a scaling agent in full: `muster scale explain`.
#pragma once

#include <iosfwd>

#include "muster/v1/scaling_service.pb.h"
#include "nlohmann/json.hpp"

namespace muster::cli {

void PrintExplained(const v1::GetDecisionResponse& explained, std::ostream& out);
nlohmann::ordered_json ExplainedJson(const v1::GetDecisionResponse& explained);

}  // namespace muster::cli
