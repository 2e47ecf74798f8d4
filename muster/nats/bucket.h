// What the key-value and the object buckets of NATS have in common.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace muster::nats {

// InvalidArgument unless `bucket` is [A-Za-z0-9_-]+, of at most 128 bytes: it becomes part of
// a stream's name, which is a directory's, and of subjects.
absl::Status ValidateBucket(absl::string_view bucket);

}  // namespace muster::nats
