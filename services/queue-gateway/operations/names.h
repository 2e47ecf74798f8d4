// SPDX-License-Identifier: Apache-2.0

// Names that callers choose: of queues, and of their metadata.
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "muster/queue/queue_store.h"
#include "services/queue-gateway/http/message.h"
#include "services/queue-gateway/protocol/error.h"

namespace muster::queue_gateway::operations {

// OutOfRangeInput: not 3 to 63 characters; InvalidResourceName: others than a–z, 0–9 and single
// dashes within. nullopt: the name is fine.
std::optional<protocol::Error> CheckQueueName(absl::string_view name);

// The headers x-ms-meta-NAME, whose names keep their case. Names that differ in case only are one
// header, and their values are joined by commas, as HTTP has it. EmptyMetadataKey, InvalidMetadata,
// MetadataTooLarge: more than 8 KiB.
protocol::OrError<queue::Metadata> MetadataOf(const http::Headers& headers);

// The headers for `metadata`.
http::Headers MetadataHeaders(const queue::Metadata& metadata);

}  // namespace muster::queue_gateway::operations
