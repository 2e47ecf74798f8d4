// SPDX-License-Identifier: Apache-2.0

// A stored value with a checksum that detects damage.
//
//   +----------------------------+------------------
//   | XXH3-128 of payload, high  | payload …
//   | 64 bits, big-endian        |
//   +----------------------------+------------------
//   0                            8
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster::rocksdb {

std::string CheckedValue(absl::string_view payload);

// The payload, a view into `value`. DataLoss naming `what` when the value is damaged.
absl::StatusOr<absl::string_view> CheckedPayload(absl::string_view value, absl::string_view what);

// Integers as keys: big-endian, so that keys sort as the integers do.
void AppendKey(uint64_t number, std::string* key);
// Of the first eight bytes.
uint64_t KeyNumber(absl::string_view bytes);

// Integers in values: little-endian.

template <typename Int>
void AppendLittle(std::string* out, Int value) {
  const auto bits = static_cast<std::make_unsigned_t<Int>>(value);
  for (size_t i = 0; i < sizeof(Int); ++i) out->push_back(static_cast<char>(bits >> (8 * i)));
}

template <typename Int>
Int LoadLittle(const char* from) {
  uint64_t bits = 0;
  for (size_t i = 0; i < sizeof(Int); ++i) {
    bits |= static_cast<uint64_t>(static_cast<uint8_t>(from[i])) << (8 * i);
  }
  return static_cast<Int>(bits);
}

}  // namespace muster::rocksdb
