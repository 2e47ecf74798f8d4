// Names as parts of subjects.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace muster::nats {

// `text` as one token of a subject: each byte other than [A-Za-z0-9_-] is written as = and two
// hexadecimal digits; an empty text is a single =.
std::string SubjectToken(absl::string_view text);

}  // namespace muster::nats
