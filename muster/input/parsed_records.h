// SPDX-License-Identifier: Apache-2.0

// ParsedRecords: the records of a slice, in columns, and the rejected records.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace muster::input {

// Where a record stands: its position in its slice, from 0, and the physical line it begins at.
struct RecordPosition {
  int ordinal = 0;
  int64_t line = 0;
};

struct RejectedRecord {
  int ordinal = 0;
  int64_t line = 0;
  std::string reason;
};

// Filled by RecordParser::Parse and meant to be reused: once grown, it allocates nothing for sound
// records. Views lead into the parsed slice, or into `room`. Not thread-safe.
struct ParsedRecords {
  int columns = 0;
  std::vector<absl::string_view> fields;  // of the sound records, `columns` each; none is null
  std::vector<RecordPosition> records;    // the sound ones, in order
  std::vector<RejectedRecord> rejected;   // the others, in order

  // Sound and rejected ones: the slice's transactions.
  size_t total() const { return records.size() + rejected.size(); }
  absl::Span<const absl::string_view> Fields(size_t record) const {
    const size_t width = static_cast<size_t>(columns);
    return absl::MakeConstSpan(fields.data() + record * width, width);
  }

  // Makes it empty, with room for `bytes` of unescaped text. Unescaping never makes text longer, so
  // a slice's own size is always enough, and views into the room stay valid.
  void Reset(int width, size_t bytes);

  std::unique_ptr<char[]> room;
  size_t room_bytes = 0;
};

}  // namespace muster::input
