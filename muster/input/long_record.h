// SPDX-License-Identifier: Apache-2.0

// FindLongRecord: the end of a CSV record that is longer than a record may be, so that it is
// skipped as one. Its lines are no records of their own: a text that a field quotes would be
// counted as transactions.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "muster/input/byte_source.h"

namespace muster::input {

struct LongRecord {
  uint64_t bytes = 0;  // with its line end
  int64_t lines = 1;   // physical lines that it spans
};

// Reads the record that begins at `offset`, without holding it, and by the same rules as
// MeasureCsvRecord. nullopt: its quotes do not work out, or it has more than kMaxLongRecordBytes.
// Errors are the source's.
absl::StatusOr<std::optional<LongRecord>> FindLongRecord(const ByteSource& source, uint64_t offset,
                                                         char delimiter);

}  // namespace muster::input
