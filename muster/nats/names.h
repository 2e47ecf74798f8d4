// SPDX-License-Identifier: Apache-2.0

// Names of buckets, names as tokens of subjects, and subjects.
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

// InvalidArgument unless `subject` can be one on the wire: not empty, without blanks and control
// characters. The protocol is lines of words, and nats.c sends a subject as it is: what stood
// behind a line feed would be a command to the server.
absl::Status ValidateSubject(absl::string_view subject);

}  // namespace muster::nats
