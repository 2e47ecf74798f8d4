// SPDX-License-Identifier: Apache-2.0

// Cross-origin resource sharing: which pages of other origins may see replies.
#pragma once

#include <string>

#include "services/queue-gateway/http/message.h"
#include "services/queue-gateway/operations/call.h"
#include "services/queue-gateway/operations/service_properties.h"

namespace muster::queue_gateway::operations {

// Answers OPTIONS, by which a browser asks before it sends the request itself. Needs no
// authentication: it is asked without. MissingRequiredHeader, CorsPreflightFailure.
Outcome Preflight(const http::Request& request, const ServiceProperties& properties);

// Adds to a reply, which has all its other headers, what its page may see of it, if the request
// came from a page and a rule allows it.
void AddCorsHeaders(const http::Request& request, const ServiceProperties& properties,
                    http::Reply* reply);

}  // namespace muster::queue_gateway::operations
