// SPDX-License-Identifier: Apache-2.0

// How commands show a schedule.
#pragma once

#include <string>
#include <vector>

#include "cli/output/format.h"
#include "muster/v1/schedule_service.pb.h"
#include "nlohmann/json.hpp"

namespace muster::cli {

// All that is known of a schedule.
nlohmann::ordered_json JsonOf(const v1::Schedule& schedule);

Table TableOf(const std::vector<v1::Schedule>& schedules);

// "0 3 * * 1-5 Europe/Berlin", "once".
std::string WhenOf(const v1::Schedule& schedule);

}  // namespace muster::cli
