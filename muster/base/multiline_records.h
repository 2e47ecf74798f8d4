// SPDX-License-Identifier: Apache-2.0

// MultilineRecords: the records of an input that span several lines, counted. A quoted field of a
// CSV may hold line ends; but so does what lies between two stray quotes, and then records are
// swallowed. So they are never unsaid.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace muster::base {

// Enough to look at, and little to store with each batch.
inline constexpr size_t kShownMultilineRecords = 5;

struct MultilineRecords {
  uint64_t records = 0;
  uint64_t lines = 0;          // that they span, all together
  std::vector<int64_t> first;  // where the first of them begin: physical lines, from 1

  void Add(int64_t at_line, int64_t spanned_lines) {
    ++records;
    lines += static_cast<uint64_t>(spanned_lines);
    if (first.size() < kShownMultilineRecords) first.push_back(at_line);
  }

  // Adds those that stand behind these.
  void Add(const MultilineRecords& later) {
    records += later.records;
    lines += later.lines;
    for (size_t i = 0; i < later.first.size() && first.size() < kShownMultilineRecords; ++i) {
      first.push_back(later.first[i]);
    }
  }

  friend bool operator==(const MultilineRecords&, const MultilineRecords&) = default;
};

}  // namespace muster::base
