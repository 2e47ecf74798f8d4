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

}  // namespace muster::rocksdb
