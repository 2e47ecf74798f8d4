// SPDX-License-Identifier: Apache-2.0

// Json: the replies of what Azure's API does not have.
#pragma once

#include "nlohmann/json_fwd.hpp"
#include "services/queue-gateway/http/message.h"

namespace muster::queue_gateway::operations {

http::Reply Json(const nlohmann::ordered_json& document);

}  // namespace muster::queue_gateway::operations
