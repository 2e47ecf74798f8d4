// Text from elsewhere, made fit to travel in a result and to be shown on one line.
#pragma once

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace muster::base {

// `text` with each byte that is not printable UTF-8 as "?", cut to `max_bytes` between characters.
std::string Printable(absl::string_view text, size_t max_bytes);

}  // namespace muster::base
