// What the views of scaling agents share.
#pragma once

#include <string>

#include "cli/output/environment.h"
#include "cli/output/table.h"
#include "muster/v1/scaling_service.pb.h"
#include "nlohmann/json.hpp"

namespace muster::cli {

// "-" where there is nothing to say.
std::string OrDash(const std::string& text);
// "40.0/s"; "not known".
std::string RateCell(double items_per_second);
nlohmann::ordered_json CountsJson(const v1::ReplicaCounts& counts);

// Rows, or what programs read, in the format that was asked for.
void PrintRows(const Table& table, const nlohmann::ordered_json& json, OutputFormat format,
               const Environment& environment);

}  // namespace muster::cli
