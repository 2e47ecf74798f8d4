// SPDX-License-Identifier: Apache-2.0

// Create, delete, and the metadata of a queue.
#include <algorithm>
#include <cstdint>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "services/queue-gateway/operations/acl.h"
#include "services/queue-gateway/operations/names.h"
#include "services/queue-gateway/operations/operations.h"
#include "services/queue-gateway/operations/queue_settings.h"
#include "services/queue-gateway/protocol/reply.h"

namespace muster::queue_gateway::operations {
namespace {

using protocol::ErrorCode;

// The engine refuses metadata that mean something to it, and do not say it properly.
protocol::Error FromMetadataStatus(const absl::Status& status) {
  if (absl::IsInvalidArgument(status)) {
    return {ErrorCode::kInvalidMetadata, {{"Reason", std::string(status.message())}}};
  }
  return protocol::FromStore(status);
}

// Names count in any case: some clients send them in lower case whatever their program says.
queue::Metadata WithLoweredNames(const queue::Metadata& metadata) {
  queue::Metadata lowered;
  for (const auto& [name, value] : metadata) lowered.emplace(absl::AsciiStrToLower(name), value);
  return lowered;
}

std::optional<protocol::Error> CheckSettings(const Call& call, const queue::Metadata& metadata,
                                             const Stores& stores) {
  const auto settings = ReadSettings(metadata, call.resource.queue, stores.queues->traits());
  if (settings.ok()) return std::nullopt;
  return settings.error();
}

}  // namespace

// Of two callers that create the same queue at once, both may see 201.
Outcome CreateQueue(const Call& call, const Stores& stores) {
  const protocol::OrError<queue::Metadata> metadata = MetadataOf(call.http.headers);
  if (!metadata.ok()) return metadata.error();
  if (const auto problem = CheckSettings(call, *metadata, stores)) return *problem;
  const auto there = stores.queues->GetMetadata(call.queue());
  if (!there.ok() && !absl::IsNotFound(there.status())) return protocol::FromStore(there.status());
  if (there.ok()) {
    if (WithLoweredNames(*there) != WithLoweredNames(*metadata)) {
      return ErrorCode::kQueueAlreadyExists;
    }
    return protocol::Empty(204);
  }
  const absl::Status created = stores.queues->CreateQueue(call.queue(), *metadata);
  if (!created.ok()) return FromMetadataStatus(created);
  return protocol::Empty(201);
}

Outcome DeleteQueue(const Call& call, const Stores& stores) {
  const absl::Status deleted = stores.queues->DeleteQueue(call.queue());
  if (!deleted.ok()) return protocol::FromStore(deleted);
  ForgetAcl(call.queue(), stores);
  return protocol::Empty(204);
}

// Clients read the count into 32 bits.
Outcome GetQueueMetadata(const Call& call, const Stores& stores) {
  const auto metadata = stores.queues->GetMetadata(call.queue());
  if (!metadata.ok()) return protocol::FromStore(metadata.status());
  const auto stats = stores.queues->Stats(call.queue());
  if (!stats.ok()) return protocol::FromStore(stats.status());
  http::Headers headers = MetadataHeaders(*metadata);
  headers.emplace_back("x-ms-approximate-messages-count",
                       absl::StrCat(std::min<int64_t>(stats->stored(), INT32_MAX)));
  return protocol::Empty(200, std::move(headers));
}

Outcome SetQueueMetadata(const Call& call, const Stores& stores) {
  const protocol::OrError<queue::Metadata> metadata = MetadataOf(call.http.headers);
  if (!metadata.ok()) return metadata.error();
  if (const auto problem = CheckSettings(call, *metadata, stores)) return *problem;
  const absl::Status set = stores.queues->SetMetadata(call.queue(), *metadata);
  if (!set.ok()) return FromMetadataStatus(set);
  return protocol::Empty(204);
}

}  // namespace muster::queue_gateway::operations
