// How a sync store lies in JetStream: as a key-value bucket of NATS (ADR-8), which any NATS tool
// reads.
//
//   stream KV_<bucket>            one message for each key, the last one written
//   subject $KV.<bucket>.<key>    the data, as it is; its stream sequence is the record's version
//   header KV-Operation           DEL or PURGE: somebody deleted the key with a tool
//
// Keys of a bucket may hold all that sync keys may, but a dot only between other characters, and
// "_kv" at the beginning is NATS's own. A dot or underscore that may not stand where it is is
// written as =2E or =5F; sync keys hold no =.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "muster/nats/message.h"
#include "nlohmann/json_fwd.hpp"

namespace muster::sync::jetstream {

std::string StreamOf(absl::string_view bucket);
// `key` is valid (sync::ValidateKey).
std::string SubjectOf(absl::string_view bucket, absl::string_view key);

std::string EscapeKey(absl::string_view key);
std::string UnescapeKey(absl::string_view escaped);

// The stream's configuration, for EnsureStream.
nlohmann::json BucketConfig(absl::string_view bucket, int replicas);

// Whether a message with these headers says that its key was deleted.
bool MarksDeletion(absl::Span<const nats::Header> headers);

}  // namespace muster::sync::jetstream
