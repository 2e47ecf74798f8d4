// Bytes as golden tests write them.
#pragma once

#include <charconv>
#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace muster::base {

// The bytes that pairs of hexadecimal digits stand for. (Abseil's own is spelled differently from
// release to release.)
inline std::string BytesFromHex(absl::string_view hex) {
  std::string bytes;
  for (size_t i = 0; i + 2 <= hex.size(); i += 2) {
    unsigned char byte = 0;
    std::from_chars(hex.data() + i, hex.data() + i + 2, byte, 16);
    bytes += static_cast<char>(byte);
  }
  return bytes;
}

}  // namespace muster::base
