// The metadata of a queue as its aside stream holds them: a JSON object of strings.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "muster/queue/queue_store.h"

namespace muster::queue::jetstream {

std::string EncodeMetadata(const queue::Metadata& metadata);

// DataLoss: `text` is something else. `queue` is named in the error.
absl::StatusOr<queue::Metadata> DecodeMetadata(const queue::QueueId& queue,
                                               const std::string& text);

}  // namespace muster::queue::jetstream
