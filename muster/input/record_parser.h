// RecordParser: turns a slice into records, and records into the columns that handlers see.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "muster/input/csv_parser.h"
#include "muster/input/format.h"
#include "muster/input/header.h"
#include "muster/input/parsed_records.h"

namespace muster::input {

// A record that cannot be read is rejected with a reason and never stops the others:
//   csv    it has another number of fields than the header (without a header: fewer than a column
//          needs); its quotes do not work out
//   jsonl  it is not a JSON object; a wanted member is there twice
//   any    it is not UTF-8
// csv and lines: a field is the text as it stands, unquoted; spaces are kept. jsonl: a string's
// text; a number, true or false as written; a nested value as compact JSON; an absent member or
// null is "".
//
// Immutable and thread-safe; one per job will do.
class RecordParser {
 public:
  // DataLoss unless `positions` are such as a Header of `format` has: one for each column, and none
  // behind the header's last field. They come out of stored messages.
  static absl::Status CheckPositions(const InputFormat& format, const std::vector<int>& positions,
                                     int header_fields);

  // `positions` of the input's Header; they matter for csv only. `header_fields`: how many names
  // its header has, 0 without one. With positions that CheckPositions refuses each record is
  // rejected, for that reason.
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

// The reason that an oversized slice's one transaction is rejected with.
std::string OversizedReason(uint64_t record_bytes, uint64_t limit_bytes);

}  // namespace muster::input
