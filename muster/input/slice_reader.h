// SPDX-License-Identifier: Apache-2.0

// SliceReader: cuts an input into slices, each a run of whole records that becomes one work item.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "muster/base/multiline_records.h"
#include "muster/input/byte_source.h"
#include "muster/input/format.h"

namespace muster::input {

struct SliceLimits {
  uint32_t transactions = 500;           // at least 1
  size_t max_bytes = size_t{256} << 10;  // a single record may exceed it; see InputFormat
  size_t read_bytes = kWindowBytes;      // read at once; makes no difference to the slices
};

// Where reading begins: after the header (Header), or at a slice that was recorded.
struct SliceStart {
  uint64_t offset = 0;
  int64_t line = 1;  // the physical line, from 1, that begins at `offset`
};

// Slices follow one another in the input; between two of them lie at most empty lines.
struct Slice {
  uint64_t offset = 0;
  uint64_t length = 0;  // bytes, line ends included
  int64_t first_line = 1;
  uint32_t transactions = 0;  // 1 or more
  // The slice is one record that is longer than a record may be. `data` is empty: it was skipped
  // without being held in memory, and counts as one rejected transaction.
  bool oversized = false;
  base::MultilineRecords multiline;  // of its records
  absl::string_view data;            // valid until the next call of Next
  SliceStart next;                   // what follows the slice
};

// The slices are a function of the content and the limits alone: reading again, from the start or
// from any recorded slice, gives the same ones. Memory is bounded for every input. Not thread-safe.
class SliceReader {
 public:
  // `source` is not owned.
  SliceReader(const ByteSource* source, const InputFormat& format, SliceLimits limits,
              SliceStart start);

  // The next slice, or nullopt at the end. An error is the source's, and ends the reading: a new
  // reader may begin behind the last good slice. While a source still grows, bytes that have not
  // arrived (HasNotArrived) might belong to the slice, so Next returns no slice before they are
  // there.
  absl::StatusOr<std::optional<Slice>> Next();

 private:
  struct Run {
    uint32_t records = 0;
    size_t bytes = 0;   // up to the end of the last record
    int64_t lines = 0;  // likewise
    base::MultilineRecords multiline;
    bool cut = false;  // the text ended too early to tell: measure again with `lookahead_` bytes
    // Where a record begins whose quote is not closed as far as a record may reach; nullopt: none.
    std::optional<size_t> open;
  };
  struct Line {
    size_t end = 0;  // in the text, behind the line end; 0: no record that the slice can hold
    int64_t lines = 0;
    bool cut = false;   // as in Run
    bool open = false;  // likewise
  };

  static Line Cut() { return {0, 0, true}; }
  static Line Open() { return {0, 0, false, true}; }

  // The longest run of records at the start of `text` that the limits allow; none when the first
  // record is too long.
  Run Measure(absl::string_view text) const;
  // The same of window_, whose text it makes as long as need be.
  absl::StatusOr<Run> MeasureWindow();
  // The record at `begin`, which has a quote in its first line.
  Line LineWithQuotes(absl::string_view text, size_t begin) const;
  // The record at `begin`, behind which the text has neither quote nor newline.
  Line LastLine(absl::string_view text, size_t begin) const;
  // Of window_, which begins with a record that is too long.
  absl::StatusOr<Slice> SkipLongRecord();
  absl::StatusOr<Slice> SkipLongLine();

  const char delimiter_;
  const bool quotes_;
  const bool multiline_;
  const size_t max_record_bytes_;
  const SliceLimits limits_;
  const size_t lookahead_;          // so many bytes always tell where a slice ends
  const ByteSource* const source_;  // not owned
  Window window_;
  int64_t line_;
  // Where lines begin, in window_, whose quote is found never to be closed: they are records.
  std::vector<size_t> broken_lines_;
};

// ReadHeader: what an input says before its first record.

struct Header {
  // csv: where each of InputFormat::columns stands in a record, from 0. Empty for other formats.
  std::vector<int> positions;
  // csv with a header: its names, in order; every record must have as many fields.
  std::vector<std::string> fields;
  // Behind byte order mark and header: where the first slice may begin.
  SliceStart data;
};

// InvalidArgument, in words for the user: the input is not UTF-8 (a UTF-16 byte order mark, say),
// lacks a required header or a column, or names a wanted column twice. An input with a header and
// no records is fine, and so is an empty one that needs no header.
absl::StatusOr<Header> ReadHeader(const ByteSource& source, const InputFormat& format);

}  // namespace muster::input
