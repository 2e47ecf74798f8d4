// The bytes of a blob, in chunks on a subject of their own.
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "muster/blob/jetstream/object_layout.h"
#include "muster/nats/jetstream.h"

namespace muster::blob::jetstream {

// How many `bytes` make.
size_t ChunksOf(size_t bytes);

// Publishes `data` in order, kWindowChunks at a time. OK: the server has acknowledged each of them.
absl::Status WriteChunks(nats::JetStream* jetstream, const std::string& subject,
                         absl::string_view data);

// DataLoss: they are not all there, or not what `info` says. On top of JetStream's own statuses.
absl::StatusOr<std::string> ReadChunks(nats::JetStream* jetstream, const ObjectInfo& info);

}  // namespace muster::blob::jetstream
