// SPDX-License-Identifier: Apache-2.0

// Whether the body of a request is what its Content-MD5 says.
#pragma once

#include <optional>

#include "services/queue-gateway/operations/call.h"
#include "services/queue-gateway/protocol/error.h"

namespace muster::queue_gateway::operations {

// Md5Mismatch: it is not. nullopt: it is, or the request has no such header.
std::optional<protocol::Error> CheckMd5(const Call& call);

}  // namespace muster::queue_gateway::operations
