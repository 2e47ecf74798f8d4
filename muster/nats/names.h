// What the key-value and the object buckets of NATS have in common.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace muster::nats {

// InvalidArgument unless `bucket` is [A-Za-z0-9_-]+, of at most 128 bytes: it becomes part of
// a stream's name, which is a directory's, and of subjects.
absl::Status ValidateBucket(absl::string_view bucket);

// Names as parts of subjects.

// `text` as one token of a subject: each byte other than [A-Za-z0-9_-] is written as = and two
// hexadecimal digits; an empty text is a single =.
std::string SubjectToken(absl::string_view text);

}  // namespace muster::nats
