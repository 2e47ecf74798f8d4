// SPDX-License-Identifier: Apache-2.0

// RecordParser: turns a slice into records, and records into the columns that handlers see.
//
// A record that cannot be read is rejected with a reason and never stops the others:
//   csv    it has another number of fields than the header (without a header: fewer than a column
//          needs); its quotes do not work out
//   jsonl  it is not a JSON object; a wanted member is there twice
//   csv, lines  a CR that no LF follows stands in it, and not within quotes: it may be two records
//   any    it is not UTF-8, or has a NUL byte
// csv and lines: a field is the text as it stands, unquoted; spaces are kept. jsonl: a string's
// text; a number, true or false as written; a nested value as compact JSON; an absent member or
// null is "".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "muster/input/csv_parser.h"
#include "muster/input/format.h"
#include "muster/input/parsed_records.h"
#include "muster/input/slice_reader.h"

namespace muster::input {

// Immutable and thread-safe; one per job will do.
class RecordParser {
 public:
  // DataLoss unless `positions` fit a Header of `format`: one for each column, and none behind the
  // header's last field. The positions come out of stored messages.
  static absl::Status CheckPositions(const InputFormat& format, const std::vector<int>& positions,
                                     int header_fields);

  // `positions` of the input's Header; they matter for csv only. `header_fields`: the number of
  // names in its header, 0 without one. If CheckPositions refuses the positions, each record is
  // rejected for that reason.
  RecordParser(InputFormat format, std::vector<int> positions, int header_fields);
  RecordParser(InputFormat format, const Header& header);

  // Parses a slice as SliceReader cut it; `first_line` is its own. Afterwards out->total() is the
  // slice's number of transactions. `slice` must outlive the use of `out`.
  void Parse(absl::string_view slice, int64_t first_line, ParsedRecords* out) const;

 private:
  void ParseLines(absl::string_view slice, int64_t first_line, ParsedRecords* out) const;

  const InputFormat format_;
  const CsvShape csv_;
  const std::vector<std::string> members_;  // jsonl: of the columns, in order
};

// The reason for rejecting the one transaction of an oversized slice.
std::string OversizedReason(uint64_t record_bytes, uint64_t limit_bytes);

}  // namespace muster::input
