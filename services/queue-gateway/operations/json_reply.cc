// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/operations/json_reply.h"

#include "nlohmann/json.hpp"

namespace muster::queue_gateway::operations {

http::Reply Json(const nlohmann::ordered_json& document) {
  // A text of the dialect of 2008 may be any bytes; ShownText has made base64 of it.
  return {200,
          {{"Content-Type", "application/json"}, {"Cache-Control", "no-cache"}},
          document.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace)};
}

}  // namespace muster::queue_gateway::operations
