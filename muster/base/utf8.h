// Strict UTF-8 (RFC 3629): no overlong forms, no surrogates, nothing above U+10FFFF.
#pragma once

#include <cstddef>

#include "absl/strings/string_view.h"

namespace muster::base {

// How many bytes the first character of `text` has; 0 when `text` is empty or does not start with a
// whole, valid character.
size_t Utf8Prefix(absl::string_view text);

// The same, but 0 also for the control characters: U+0000–001F, U+007F–009F, and the line and
// paragraph separators U+2028 and U+2029.
size_t PrintableUtf8Prefix(absl::string_view text);

bool IsValidUtf8(absl::string_view text);

}  // namespace muster::base
