// Where a text stops being UTF-8, at the speed of reading it.
#pragma once

#include <cstddef>

#include "absl/strings/string_view.h"

namespace muster::input {

bool IsAscii(absl::string_view text);

// Where the first byte stands that begins no valid character (base/utf8.h); text.size() when there
// is none.
size_t FirstInvalidUtf8(absl::string_view text);

}  // namespace muster::input
