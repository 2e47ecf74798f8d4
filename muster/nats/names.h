// SPDX-License-Identifier: Apache-2.0

// Names of buckets, and names as tokens of subjects.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace muster::nats {

// InvalidArgument unless `bucket`, of key-values or objects, is [A-Za-z0-9_-]+ of at most 128
// bytes: it becomes part of subjects and of the name of a stream, which is also the name of a
// directory.
absl::Status ValidateBucket(absl::string_view bucket);

// Names as parts of subjects.

// Returns `text` as one token of a subject: each byte other than [A-Za-z0-9_-] is written as = and
// two hexadecimal digits; an empty text is a single =.
std::string SubjectToken(absl::string_view text);

}  // namespace muster::nats
