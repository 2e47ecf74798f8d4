// SPDX-License-Identifier: Apache-2.0
#include "muster/input/byte_scan.h"

namespace muster::input {

bool IsAscii(absl::string_view text) {
  // Blocks without an early way out are what the compiler turns into vector code.
  constexpr size_t kBlock = 256;
  while (text.size() >= kBlock) {
    uint8_t seen = 0;
    for (size_t i = 0; i < kBlock; ++i) seen |= static_cast<uint8_t>(text[i]);
    if (seen >= 0x80) return false;
    text.remove_prefix(kBlock);
  }
  for (char c : text) {
    if (static_cast<uint8_t>(c) >= 0x80) return false;
  }
  return true;
}

}  // namespace muster::input
