// SPDX-License-Identifier: Apache-2.0
#include "muster/input/byte_scan.h"

#include "muster/base/text.h"

namespace muster::input {
namespace {

// Bytes at the start of `text` that are ASCII for certain; a multiple of 8.
size_t AsciiWords(absl::string_view text) {
  constexpr uint64_t kHighBits = 0x8080808080808080u;
  size_t at = 0;
  for (uint64_t word; at + sizeof(word) <= text.size(); at += sizeof(word)) {
    std::memcpy(&word, text.data() + at, sizeof(word));
    if ((word & kHighBits) != 0) break;
  }
  return at;
}

}  // namespace

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

size_t FirstInvalidUtf8(absl::string_view text) {
  size_t at = AsciiWords(text);
  while (at < text.size()) {
    const size_t bytes = base::Utf8Prefix(text.substr(at));
    if (bytes == 0) return at;
    at += bytes;
    if (bytes > 1) at += AsciiWords(text.substr(at));
  }
  return at;
}

}  // namespace muster::input
