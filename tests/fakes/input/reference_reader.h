// SPDX-License-Identifier: Apache-2.0

// A second, slow and plain reading of an input, character by character, which the property tests
// compare the real one with. It shares no code with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "muster/input/format.h"

namespace muster::input {

struct ReferenceRecord {
  size_t begin = 0;
  size_t end = 0;  // behind its line end
  int64_t line = 1;
  bool oversized = false;
  bool broken = false;              // its quotes do not work out
  bool suspicious = false;          // it has a NUL, or outside of quotes a CR that no LF follows
  size_t lines = 1;                 // that it spans
  std::vector<std::string> fields;  // of a sound CSV record
};

// All records of `text`, as the rules in format.h have them.
std::vector<ReferenceRecord> ReadByReference(const std::string& text, const InputFormat& format);

// Where slices of at most so many records and bytes begin and end.
struct ReferenceSlice {
  size_t begin = 0;
  size_t end = 0;
  size_t records = 0;
  size_t multiline_records = 0;
  size_t multiline_lines = 0;  // that these span
  bool oversized = false;
};
std::vector<ReferenceSlice> SliceByReference(const std::vector<ReferenceRecord>& records,
                                             size_t transactions, size_t max_bytes);

}  // namespace muster::input
